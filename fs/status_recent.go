package fs

import "sync"

// recent remembers what was put last, a bounded number of entries in all: when
// one half is full, the older half is forgotten.
type recent[K comparable, V any] struct {
	half int

	mu         sync.Mutex
	young, old map[K]V
}

func newRecent[K comparable, V any](most int) *recent[K, V] {
	return &recent[K, V]{half: most / 2}
}

func (r *recent[K, V]) put(key K, value V) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.putLocked(key, value)
}

func (r *recent[K, V]) putLocked(key K, value V) {
	if len(r.young) >= r.half {
		r.young, r.old = nil, r.young
	}
	if r.young == nil {
		r.young = map[K]V{}
	}
	r.young[key] = value
}

// get returns what was put under a key, which is young again then.
func (r *recent[K, V]) get(key K) (V, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	v, ok := r.young[key]
	if !ok {
		if v, ok = r.old[key]; ok {
			r.putLocked(key, v)
		}
	}
	return v, ok
}
