package shm

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"
)

func openTable(t testing.TB, m *Memory) *Table {
	t.Helper()
	table, err := OpenTable(m)
	if err != nil {
		t.Fatal(err)
	}
	return table
}

// contents are the records of a table.
func contents(t testing.TB, table *Table) map[Key]string {
	t.Helper()
	all := map[Key]string{}
	for kind := Kind(1); kind < 4; kind++ {
		err := table.Each(kind, func(id uint64, content []byte) error {
			all[Key{kind, id}] = string(content)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// errCut is what a process dies of in a test.
var errCut = errors.New("killed")

// cutAfter has a table die after a number of steps, and reports whether it did.
func cutAfter(table *Table, steps int, f func()) (cut bool) {
	table.step = func() {
		if steps--; steps < 0 {
			panic(errCut)
		}
	}
	defer func() {
		table.step = nil
		if r := recover(); r != nil {
			if r != errCut {
				panic(r)
			}
			cut = true
		}
	}()
	f()
	return false
}

// randomChange changes some records, and the model as well.
func randomChange(r *rand.Rand, model map[Key]string) (*Change, map[Key]string) {
	after := maps.Clone(model)
	c := &Change{}
	used := map[Key]bool{}
	for range 1 + r.IntN(4) {
		key := Key{Kind(1 + r.IntN(3)), uint64(r.IntN(12))}
		if used[key] {
			continue
		}
		used[key] = true
		if r.IntN(3) == 0 {
			c.Delete(key)
			delete(after, key)
			continue
		}
		content := bytes.Repeat([]byte{byte(r.IntN(256))}, r.IntN(700))
		c.Set(key, func(b []byte) []byte { return append(b, content...) })
		after[key] = string(content)
	}
	return c, after
}

// TestTable_CutAnywhere: M1. A change that is cut between any two stores is there
// wholly or not at all for the next process, together with the outcome of its
// request, and what it was cut in does no harm to what comes after.
func TestTable_CutAnywhere(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	m := newMemory(t, Options{Slots: 2, Heap: 8 << 20})
	model := map[Key]string{}
	table := openTable(t, m)
	cuts := 0
	for i := range 3000 {
		c, after := randomChange(r, model)
		s := m.Slot(i % 2)
		s.Reading()
		request(s, uint64(i+1)*2, 64)
		unique := s.Begin(64).Unique
		c.Outcome(s, unique, int32(-i), uint64(i))
		cut := cutAfter(table, r.IntN(40), func() {
			if err := table.Commit(c); err != nil {
				t.Fatal(err)
			}
		})
		if cut {
			cuts++
			table = openTable(t, m)
		}
		got := contents(t, table)
		done := len(table.Outcomes()) > 0 && table.Outcomes()[0] == Outcome{i % 2, unique, int32(-i), uint64(i)}
		switch {
		case maps.Equal(got, after) && done:
			model = after
		case cut && maps.Equal(got, model) && !done:
		default:
			t.Fatalf("change %d, cut %t: outcome %t, got %d records, want %d or %d", i, cut, done, len(got), len(model), len(after))
		}
		s.End()
	}
	t.Logf("%d cuts", cuts)
	if next := contents(t, openTable(t, m)); !maps.Equal(next, model) {
		t.Error("another process sees something else")
	}
	if used := used(t, m); used > 2<<20 {
		t.Errorf("%d bytes are in use for %d records", used, len(model))
	}
}

// TestTable_GivesBack: M3. What many records and much data took goes back to the
// system, whatever their sizes.
func TestTable_GivesBack(t *testing.T) {
	m := newMemory(t, Options{Slots: 2})
	table := openTable(t, m)
	var data []Data
	for i := range 20000 {
		d, err := table.NewData(1 + i%3000)
		if err != nil {
			t.Fatal(err)
		}
		if i%100 == 0 {
			big, err := table.NewData(1 << 20)
			if err != nil {
				t.Fatal(err)
			}
			data = append(data, big)
		}
		data = append(data, d)
		for _, d := range data[max(0, len(data)-2):] {
			b := table.Bytes(d)
			b[0], b[len(b)-1] = 1, 1
		}
		c := &Change{}
		c.Set(Key{1, uint64(i)}, func(b []byte) []byte { return append(b, make([]byte, i%500)...) })
		if err := table.Commit(c); err != nil {
			t.Fatal(err)
		}
	}
	most := used(t, m)
	for i := range 20000 {
		c := &Change{}
		c.Delete(Key{1, uint64(i)})
		if err := table.Commit(c); err != nil {
			t.Fatal(err)
		}
	}
	rand.Shuffle(len(data), func(i, j int) { data[i], data[j] = data[j], data[i] })
	for _, d := range data {
		table.FreeData(d)
	}
	if left := used(t, m); left > 12<<20 || most < 30<<20 {
		t.Errorf("%d bytes at most, %d bytes left", most, left)
	}
	if n := len(table.heap.spare); n > len(table.heap.chunks) {
		t.Errorf("%d spare chunks of %d", n, len(table.heap.chunks))
	}
}

// TestTable_Data: data that is claimed is nobody else's, and what cannot be is
// refused.
func TestTable_Data(t *testing.T) {
	m := newMemory(t, Options{Slots: 2, Heap: 16 << 20})
	table := openTable(t, m)
	var data []Data
	for i := range 200 {
		d, err := table.NewData(i * 97 % (200 << 10))
		if err != nil {
			t.Fatal(err)
		}
		for j := range table.Bytes(d) {
			table.Bytes(d)[j] = byte(i)
		}
		data = append(data, d)
	}
	next := openTable(t, mustReopen(t, m))
	for i, d := range data {
		if err := next.Claim(d); err != nil {
			t.Fatalf("data %d, %+v: %v", i, d, err)
		}
		if err := next.Claim(d); !errors.Is(err, ErrDamaged) {
			t.Fatalf("data %d, %+v claimed twice: %v", i, d, err)
		}
	}
	for {
		d, err := next.NewData(1000)
		if errors.Is(err, ErrFull) {
			break
		}
		clear(next.Bytes(d))
	}
	for i, d := range data {
		if b := next.Bytes(d); b[0] != byte(i) || b[len(b)-1] != byte(i) {
			t.Fatalf("data %d was given to another", i)
		}
	}
	for _, d := range []Data{{1, 64}, {m.heap, 64}, {m.size, 64}, {m.size - 32, 64}, {data[0].At, 63}, {data[0].At + 1, 64}, {data[0].At, 1 << 40}, {data[0].At, -1}} {
		if err := openTable(t, m).Claim(d); !errors.Is(err, ErrDamaged) {
			t.Errorf("%+v was claimed: %v", d, err)
		}
	}
}

// TestTable_FarApart: records are found that lie behind any amount of data.
func TestTable_FarApart(t *testing.T) {
	m := newMemory(t, Options{Slots: 2, Heap: 16 << 30})
	table := openTable(t, m)
	set := func(id uint64) {
		c := &Change{}
		c.Set(Key{1, id}, func(b []byte) []byte { return append(b, make([]byte, 4000)...) })
		if err := table.Commit(c); err != nil {
			t.Fatal(err)
		}
	}
	set(0)
	if _, err := table.NewData(6 << 30); err != nil {
		t.Fatal(err)
	}
	for id := range uint64(100) {
		set(1 + id)
	}
	if got := len(contents(t, openTable(t, mustReopen(t, m)))); got != 101 {
		t.Errorf("the next process finds %d records of 101", got)
	}
}

// TestTable_Full: a change that has no room changes nothing.
func TestTable_Full(t *testing.T) {
	m := newMemory(t, Options{Slots: 2, Heap: 4 * chunkSize})
	table := openTable(t, m)
	n := uint64(0)
	for ; ; n++ {
		c := &Change{}
		for _, id := range []uint64{2 * n, 2*n + 1} {
			c.Set(Key{1, id}, func(b []byte) []byte { return append(b, fmt.Sprintf("%5000d", id)...) })
		}
		if err := table.Commit(c); errors.Is(err, ErrFull) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	for _, table := range []*Table{table, openTable(t, m)} {
		if got := contents(t, table); len(got) != int(2*n) || n == 0 {
			t.Errorf("%d records after %d changes", len(got), n)
		}
	}
	c := &Change{}
	c.Delete(Key{1, 0})
	if err := table.Commit(c); err != nil && !errors.Is(err, ErrFull) {
		t.Error(err)
	}
}

// TestOpenTable_Damaged: M2. Records that make no sense are refused, and nothing
// that is in the memory makes it panic.
func TestOpenTable_Damaged(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	refused := 0
	for range 300 {
		m := newMemory(t, Options{Slots: 2, Heap: 2 << 20})
		table := openTable(t, m)
		model := map[Key]string{}
		for range 20 {
			var c *Change
			c, model = randomChange(r, model)
			if err := table.Commit(c); err != nil {
				t.Fatal(err)
			}
		}
		for range 1 + r.IntN(40) {
			at := m.heap + uint64(r.IntN(4*chunkSize))
			if r.IntN(4) == 0 {
				at = m.heap + uint64(r.IntN(8))
			}
			m.data[at] = byte(r.IntN(256))
		}
		if _, err := OpenTable(m); err != nil {
			if !errors.Is(err, ErrDamaged) {
				t.Fatal(err)
			}
			refused++
		}
		if err := m.Close(); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%d of 300 refused", refused)
	if refused == 0 {
		t.Error("nothing was ever refused")
	}
}

func BenchmarkTable_Commit(b *testing.B) {
	m := newMemory(b, Options{})
	table := openTable(b, m)
	c := &Change{}
	content := make([]byte, 150)
	for b.Loop() {
		c.Reset()
		for id := range uint64(2) {
			c.Set(Key{1, id}, func(to []byte) []byte { return append(to, content...) })
		}
		if err := table.Commit(c); err != nil {
			b.Fatal(err)
		}
	}
}
