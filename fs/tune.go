package fs

// Tune changes what may change while files are open: FileLimit, MessageLimit,
// BufferLimit, OpenLimit, UserShare, Linger, HeldFor, StoreTimeout and
// StatusGroup. It looks at no other option; see SetRoutes for the routes besides
// that of the root. What is open already stays, also if it is more than would be
// taken now.
func (fs *FS) Tune(opts Options) {
	opts.ensureDefaults()
	fs.tuned.Store(&opts)
	root := fs.root.route
	next, now := opts.root(), root.tuned.Load()
	next.Queue, next.Format, next.UserName, next.Provenance = now.Queue, now.Format, now.UserName, now.Provenance
	root.tuned.Store(next)
	fs.usage.bound(opts)
}

// bound changes the bounds.
func (u *usage) bound(opts Options) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.files, u.bytes, u.share = opts.OpenLimit, opts.BufferLimit, opts.UserShare
}
