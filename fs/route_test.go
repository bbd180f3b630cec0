package fs

import (
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"

	"spoolfs/fs/ingest"
	"spoolfs/queue"
)

// routed is a rig with routes, each of the name of its directory.
type routed struct {
	*rig
	dirs []RouteOptions // without their queues, which have the names of their directories
}

func newRouted(t testing.TB, dirs ...RouteOptions) *routed {
	r := &routed{&rig{t: t, store: t.TempDir()}, dirs}
	r.rig.routes = r.options
	r.start()
	t.Cleanup(r.stop)
	return r
}

// options are the settings of the routes, and of those that the store has besides.
func (r *routed) options(q *queue.Queue) []RouteOptions {
	r.t.Helper()
	all := slices.Clone(r.dirs)
	for i := range all {
		route, err := q.Route(all[i].Dir)
		if err != nil {
			r.t.Fatal(err)
		}
		all[i].Queue = route
	}
	for _, route := range q.Routes() {
		known := func(o RouteOptions) bool { return o.Queue == route }
		if route.Name() != "default" && !slices.ContainsFunc(all, known) {
			all = append(all, RouteOptions{Queue: route})
		}
	}
	return all
}

// set changes the routes, as a reload does.
func (r *routed) set(dirs ...RouteOptions) {
	r.t.Helper()
	r.dirs = dirs
	if err := r.fs.SetRoutes(r.options(r.queue)); err != nil {
		r.t.Fatal(err)
	}
}

// under returns a user in a directory of the root.
func (r *routed) under(uid uint32, name string) user {
	r.t.Helper()
	u := r.as(uid)
	node, st := u.lookup(name)
	if !st.Ok() {
		r.t.Fatalf("lookup of %s: %v", name, st)
	}
	return u.in(node)
}

// published takes the messages of a route.
func (r *routed) published(name string) string {
	r.t.Helper()
	route, err := r.queue.Route(name)
	if err != nil {
		r.t.Fatal(err)
	}
	return (&rig{t: r.t, route: route}).bodies()
}

func (r *routed) wantPublished(want map[string]string) {
	r.t.Helper()
	for name, body := range want {
		if got := r.published(name); got != body {
			r.t.Errorf("route %s has\n%swant\n%s", name, got, body)
		}
	}
}

// names are the files of the messages of a route that wait.
func (r *routed) names(route string) (names []string) {
	r.t.Helper()
	q, err := r.queue.Route(route)
	if err != nil {
		r.t.Fatal(err)
	}
	for m, err := range q.Pending() {
		if err != nil {
			r.t.Fatal(err)
		}
		names = append(names, m.File)
	}
	return names
}

// TestRoute_Directory: a route is a directory of the root, which everybody sees and
// nobody moves or removes; what is written in it, and below it, goes its way, by its
// format and its limits.
func TestRoute_Directory(t *testing.T) {
	r := newRouted(t, RouteOptions{Dir: "lines", Format: ingest.NewSarracenia(ingest.SarraceniaOptions{})}, RouteOptions{Dir: "whole", Format: ingest.NewRaw("k"), FileLimit: 10})
	if names, _ := r.as(0).list(); !slices.Equal(names, []string{".status", "lines", "whole"}) {
		t.Errorf("the root lists %q", names)
	}
	lines, whole := r.under(1, "lines"), r.under(1, "whole")
	r.as(1).put("f", line("root"))
	lines.put("f", line("lines"))
	whole.put("f", "no record")
	sub := lines.mustMkdir("a", 0o755).mustMkdir("b", 0o755)
	sub.put("g", line("sub"))
	node, st := lines.lookup("+7")
	if !st.Ok() {
		t.Fatalf("lookup of a standing directory of a route: %v", st)
	}
	lines.in(node).put("h", line("standing"))
	if f := whole.mustCreate("large"); f.writeAt("more than ten", 0) != fuse.Status(syscall.EFBIG) {
		t.Error("a file may be larger than its route allows")
	} else {
		f.close()
	}
	if _, st := lines.list(); st != fuse.EACCES {
		t.Errorf("listing by a user: %v", st)
	}
	if names, _ := r.under(0, "lines").list(); !slices.Equal(names, []string{"a"}) {
		t.Errorf("the route lists %q", names)
	}
	if got := r.names("lines"); !slices.Equal(got, []string{"f", "a/b/g", "+7/h"}) {
		t.Errorf("files of the route are %q", got)
	}
	r.wantPublished(map[string]string{"default": line("root"), "lines": line("lines") + line("sub") + line("standing"), "whole": "no record"})
}

// TestRoute_Bounds: nobody moves or removes the directory of a route, not even root,
// and nothing is renamed from one route into another.
func TestRoute_Bounds(t *testing.T) {
	r := newRouted(t, RouteOptions{Dir: "one", Format: ingest.NewRaw("k")}, RouteOptions{Dir: "two", Format: ingest.NewRaw("k")})
	u, one, two := r.as(0), r.under(0, "one"), r.under(0, "two")
	one.put(".held", "x")
	dir := one.mustMkdir("dir", 0o755)
	f := one.mustCreate("open")
	const busy, other, exists = fuse.Status(syscall.EBUSY), fuse.Status(syscall.EXDEV), fuse.Status(syscall.EEXIST)
	for what, c := range map[string]struct{ got, want fuse.Status }{
		"rmdir":                         {u.rmdir("one"), busy},
		"rename of a route":             {u.rename("one", "three"), busy},
		"rename over a route":           {one.move("dir", rootNode, "two", 0), other},
		"mkdir":                         {second(u.mkdir("one", 0o755)), exists},
		"create":                        {second(u.create("one", 0)), fuse.Status(syscall.EISDIR)},
		"unlink":                        {u.unlink("one"), fuse.Status(syscall.EISDIR)},
		"chmod":                         {u.chmod(one.dir, 0o777), fuse.EPERM},
		"rename of a held file":         {one.move(".held", two.dir, "x", 0), other},
		"rename of a held one, as held": {one.move(".held", two.dir, ".x", 0), other},
		"rename to the root":            {one.move(".held", rootNode, "x", 0), other},
		"rename of an open file":        {one.move("open", two.dir, "x", 0), other},
		"rename of a directory":         {one.move("dir", two.dir, "x", 0), other},
		"rename within":                 {one.move(".held", dir.dir, "x", 0), fuse.OK},
	} {
		if c.got != c.want {
			t.Errorf("%s: %v, want %v", what, c.got, c.want)
		}
	}
	f.close()
	r.wantPublished(map[string]string{"default": "", "one": "x", "two": ""})
}

// TestRoute_GoesOn: what is open or held in a route, and its directories, are there for
// the next process, also when other routes have come and gone meanwhile.
func TestRoute_GoesOn(t *testing.T) {
	raw := func(dir string) RouteOptions { return RouteOptions{Dir: dir, Format: ingest.NewRaw("k")} }
	for name, next := range map[string]func(*rig){"take-over": (*rig).takeOver, "restart": (*rig).restart} {
		t.Run(name, func(t *testing.T) {
			r := newRouted(t, raw("old"), raw("route"))
			top := r.under(1, "route")
			sub := top.mustMkdir("sub", 0o755)
			sub.put(".held", "held")
			open := sub.mustCreate("open")
			open.writeAt("open", 0)
			open.fsync()
			nameless := top.mustCreate("nameless")
			nameless.writeAt("nameless", 0)
			top.process(99).unlink("nameless")
			nameless.fsync()
			r.dirs = []RouteOptions{raw("another"), raw("route")}
			next(r.rig)
			if again := r.under(1, "route"); again.dir != top.dir {
				t.Fatalf("the route is node %d, it was %d", again.dir, top.dir)
			}
			node, st := top.lookup("sub")
			if !st.Ok() {
				t.Fatalf("lookup of the directory: %v", st)
			}
			if name == "take-over" {
				open.writeAt("ed", 4)
				open.close()
				nameless.writeAt("!", 8)
				nameless.close()
			}
			if st := top.in(node).rename(".held", "now"); !st.Ok() {
				t.Errorf("rename of the held file: %v", st)
			}
			if _, st := r.as(1).lookup("old"); st != fuse.ENOENT {
				t.Errorf("lookup of a route that is gone: %v", st)
			}
			got := r.published("route")
			for _, want := range map[string][]string{"take-over": {"held", "opened", "nameless!"}, "restart": {"held", "open", "nameless"}}[name] {
				if strings.Count(got, want) != 1 {
					t.Errorf("published %q, want %q once", got, want)
				}
			}
			r.wantPublished(map[string]string{"default": "", "another": "", "old": ""})
		})
	}
}

// TestRoute_Removed: a route that is taken out of the configuration takes no new
// files; those that are open are finished, what is held is set aside in time, and
// what is stored is there when the route is back.
func TestRoute_Removed(t *testing.T) {
	route := RouteOptions{Dir: "route", Format: ingest.NewRaw("k"), HeldFor: time.Hour}
	r := newRouted(t, route)
	top := r.under(1, "route")
	top.put("before", "before,")
	top.put(".held", "held")
	open := top.mustCreate("open")
	open.writeAt("open", 0)
	r.set()
	if names, _ := r.as(0).list(); !slices.Equal(names, []string{".status"}) {
		t.Errorf("the root lists %q", names)
	}
	for what, st := range map[string]fuse.Status{
		"lookup": second(r.as(1).lookup("route")), "create": second(top.create("late", 0)), "mkdir": second(top.mkdir("late", 0o755)),
	} {
		if st != fuse.ENOENT {
			t.Errorf("%s in a route that is gone: %v", what, st)
		}
	}
	open.close()
	r.takeOver()
	r.pass(25 * time.Hour)
	q, err := r.queue.Route("route")
	if err != nil {
		t.Fatal(err)
	}
	if got := (&rig{t: t, route: q}).partials(); len(got) != 1 || !strings.HasPrefix(got[0], ".held 1 abandoned") {
		t.Errorf("set aside are %q", got)
	}
	r.set(route)
	r.under(1, "route").put("after", ",after")
	r.wantPublished(map[string]string{"route": "before,open,after", "default": ""})
}

// TestRoute_HidesDirectory: the directory of a route hides that of a user, which is
// there again when the route is gone.
func TestRoute_HidesDirectory(t *testing.T) {
	r := newRouted(t)
	was := r.as(1).mustMkdir("route", 0o755)
	was.put(".held", line("held"))
	open := was.mustCreate("open")
	open.writeAt(line("open"), 0)
	r.set(RouteOptions{Dir: "route", Format: ingest.NewRaw("k")})
	if names, _ := r.as(0).list(); !slices.Equal(names, []string{".status", "route"}) {
		t.Errorf("the root lists %q", names)
	}
	r.takeOver()
	r.under(1, "route").put("f", "raw")
	open.close()
	r.wantPublished(map[string]string{"route": "raw", "default": line("open")})
	r.restart()
	r.set()
	if again := r.under(1, "route"); second(again.lookup(".held")) != fuse.OK || again.rename(".held", "x") != fuse.OK {
		t.Error("the held file in the directory of the user is not there any more")
	}
	r.wantPublished(map[string]string{"route": "", "default": line("held")})
}

// TestRoute_OpenOfNodeGone: an OPEN that comes when the last handle of its node has just
// gone makes a file of the right route.
func TestRoute_OpenOfNodeGone(t *testing.T) {
	r := newRouted(t, RouteOptions{Dir: "one", Format: ingest.NewRaw("k")}, RouteOptions{Dir: "two", Format: ingest.NewRaw("k")})
	for _, name := range []string{"one", "two"} {
		u := r.under(1, name)
		f := u.mustCreate("f")
		f.close()
		r.pass(2 * time.Second)
		late, st := u.openNode(f.node, syscall.O_WRONLY)
		if !st.Ok() {
			t.Fatal(st)
		}
		late.writeAt(name, 0)
		late.close()
	}
	r.wantPublished(map[string]string{"default": "", "one": "one", "two": "two"})
}
