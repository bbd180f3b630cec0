package fs

// Tune changes what may change while files are open: FileLimit, MessageLimit,
// BufferLimit, OpenLimit, UserShare, Linger, HeldFor, StoreTimeout and
// StatusGroup. It looks at no other option. What is open already stays, also if
// it is more than would be taken now.
func (fs *FS) Tune(opts Options) {
	opts.ensureDefaults()
	fs.tuned.Store(&opts)
	fs.usage.bound(opts)
}

// bound changes the bounds.
func (u *usage) bound(opts Options) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.files, u.bytes, u.share = opts.OpenLimit, opts.BufferLimit, opts.UserShare
}
