package keeper

import "time"

// verify asks whether the program on disk can take over, beside what goes on.
func (k *Keeper) verify() {
	if k.goal != serve {
		return
	}
	go func() { k.verified <- k.opts.Verify(k.memory.FD()) }()
}

// beginUpgrade has the worker yield to a trial of the new program.
func (k *Keeper) beginUpgrade(err error) {
	switch {
	case k.goal != serve:
		return
	case err != nil:
		k.upgradeFailed(err)
		return
	}
	k.opts.Logger.Info("upgrading: the new program is tried", "binary", k.opts.Binary)
	if k.worker == nil {
		k.try()
		return
	}
	k.goal = replace
	k.yield()
}

// try has a worker of the new program serve, within a time that leaves the old one
// enough to go on.
func (k *Keeper) try() {
	k.goal, k.own = trial, false
	k.deadline = time.After(k.trialTimeout())
	k.start()
}

func (k *Keeper) trialTimeout() time.Duration { return k.opts.WorkerTimeout / 2 }

// takeBack goes on with the running program.
func (k *Keeper) takeBack(err error) {
	k.goal, k.own, k.deadline = serve, true, nil
	k.upgradeFailed(err)
	k.start()
}

func (k *Keeper) upgradeFailed(err error) {
	k.opts.Logger.Error("the upgrade has failed: the old program goes on", "error", err)
	k.state.UpgradeFails++
	k.state.UpgradeError = err.Error()
	k.tellState()
}

// UpgradeFailed reports that the program could not be executed though it was
// proven. Run can be called again then.
func (k *Keeper) UpgradeFailed(err error) {
	k.own = true
	k.upgradeFailed(err)
}
