// Package keeper keeps a mount alive: it owns the connection to the kernel and
// the memory that outlives a worker, and starts workers, one after the other,
// that serve it. It holds no store and never touches the mount.
//
// # Guarantees
//
//   - K1: a worker that dies is replaced at once; only after deaths of its own
//     making there is a pause, which grows. Proven by TestKeeper_ReplacesWorker
//     and TestPause.
//
//   - K2: a worker that makes no progress, with a request or at all, is killed and
//     replaced. Waiting for the disk is no fault of it. Proven by
//     TestJudge_Hung, TestKeeper_ReplacesHungWorker and
//     TestKeeper_ReplacesStoppedWorker.
//
//   - K3: a request that was in hand at three deaths is answered with EIO and
//     reported. A death from outside, as by kill -9, does not count, and what
//     was in hand beside it gets no error; nor does what a worker had not begun
//     that died before it served. Proven by TestJudge_Poison,
//     TestKeeper_RefusesPoison and TestKeeper_BlamesNoBystander.
//
//   - K4: when there is no worker for too long, or there can never be one again,
//     the connection is ended, so that writers fail instead of waiting. Proven by
//     TestKeeper_GivesUp and TestKeeper_Unfit.
//
//   - K5: an upgrade that cannot serve, or not within half the time that writers
//     wait for a worker, is taken back. Proven by TestKeeper_TakesBackUpgrade and
//     TestKeeper_TakesBackLateUpgrade.
//
// # A worker's life
//
// A worker gets the connection, the memory and one end of a control socket as
// descriptors 3, 4 and 5. Over the socket it is told how to start (which is in
// neither its arguments nor its environment: there may be passwords in it), says
// that it is ready and time and again that it is alive, and is told to drain or to
// yield. It is in a process group of its own, so that Ctrl-C and a signal to the
// keeper's group reach the keeper alone, which decides; it ignores SIGTERM and
// SIGINT; and it gets SIGKILL when the keeper dies.
//
// The mount appears when the first worker is ready. If that fails there has never
// been a mount.
//
// # Who is to blame
//
// After a death of its own making the next worker handles one request at a time
// (shm.Memory.SetCareful), so that a further death names the culprit. A death is
// from outside if it is by SIGKILL, which the kernel also sends when memory is
// short.
//
// # The end without a worker
//
// The connection is closed and the mount stays, dead: a writer gets ENOTCONN at
// once. It is not unmounted, or writers would fill the directory below it, where
// nothing is durable. The next start replaces it.
package keeper
