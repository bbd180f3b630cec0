package queue

import "encoding/binary"

// The kinds of rows; see the key space in doc.go.
const (
	kindCounters = 'c'
	kindDead     = 'd'
	kindLatest   = 'l'
	kindMark     = 'i'
	kindMessage  = 'm'
	kindPartial  = 'p'
	kindRoute    = 'r'
	kindStage    = 's'
	kindDelayed  = 't'
	kindUser     = 'u'
	kindDamage   = 'x'
)

func routeKey(kind byte, route uint32) []byte {
	return binary.BigEndian.AppendUint32([]byte{kind}, route)
}

func seqKey(kind byte, route uint32, seq uint64) []byte {
	k := make([]byte, 0, 13)
	k = append(k, kind)
	k = binary.BigEndian.AppendUint32(k, route)
	return binary.BigEndian.AppendUint64(k, seq)
}

func delayedKey(route uint32, due int64, seq uint64) []byte {
	k := make([]byte, 0, 21)
	k = append(k, kindDelayed)
	k = binary.BigEndian.AppendUint32(k, route)
	k = binary.BigEndian.AppendUint64(k, uint64(due))
	return binary.BigEndian.AppendUint64(k, seq)
}

func stageKey(file FileID) []byte {
	return append([]byte{kindStage}, file[:]...)
}

func chunkKey(file FileID, chunk uint32) []byte {
	return binary.BigEndian.AppendUint32(stageKey(file), chunk)
}

// lastUint64 reads the number at the end of a key, which is the sequence number
// of rows of the kinds d, m, p and t.
func lastUint64(key []byte) uint64 {
	return binary.BigEndian.Uint64(key[len(key)-8:])
}

// wellFormed reports whether a key has the length that its kind asks for.
func wellFormed(key []byte) bool {
	if len(key) == 0 {
		return false
	}
	switch key[0] {
	case kindCounters, kindRoute, kindUser:
		return len(key) == 5
	case kindDead, kindMessage, kindPartial:
		return len(key) == 13
	case kindDelayed:
		return len(key) == 21
	case kindLatest:
		return len(key) == 21
	case kindMark:
		return len(key) == 17
	case kindStage:
		return len(key) == 17 || len(key) == 21
	}
	return true // of a later minor version
}
