package queue

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
)

// Stored values other than keys share one envelope:
//
//	┌─────────┬──────────────────────────────────────┬───────────┐
//	│ version │ field … field                        │ CRC-32C   │
//	│ 1 byte  │ tag uvarint, length uvarint, content │ 4 bytes BE│
//	└─────────┴──────────────────────────────────────┴───────────┘
//
// The checksum covers everything before it. A field with the zero value is left
// out. Tags are never reused; zero is no tag and zero is no version, so that a
// run of zero bytes is always invalid. A reader skips tags that it does not
// know; a change that old readers must not skip gets a new version.
const valueVersion = 1

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// fieldWriter builds a value.
type fieldWriter struct{ b []byte }

func newFieldWriter(size int) *fieldWriter {
	return &fieldWriter{b: append(make([]byte, 0, size+64), valueVersion)}
}

func (w *fieldWriter) field(tag uint64, content string) {
	w.b = binary.AppendUvarint(w.b, tag)
	w.b = binary.AppendUvarint(w.b, uint64(len(content)))
	w.b = append(w.b, content...)
}

func (w *fieldWriter) bytes(tag uint64, content []byte) {
	w.b = binary.AppendUvarint(w.b, tag)
	w.b = binary.AppendUvarint(w.b, uint64(len(content)))
	w.b = append(w.b, content...)
}

func (w *fieldWriter) text(tag uint64, s string) {
	if s != "" {
		w.field(tag, s)
	}
}

func (w *fieldWriter) uint(tag, v uint64) {
	if v == 0 {
		return
	}
	var buf [binary.MaxVarintLen64]byte
	w.bytes(tag, buf[:binary.PutUvarint(buf[:], v)])
}

func (w *fieldWriter) finish() []byte {
	return binary.BigEndian.AppendUint32(w.b, crc32.Checksum(w.b, castagnoli))
}

// eachField checks the envelope of a value and calls f for each field. The
// content aliases value.
func eachField(value []byte, f func(tag uint64, content []byte) error) error {
	if len(value) < 5 {
		return fmt.Errorf("%w: %d bytes", ErrCorrupt, len(value))
	}
	if value[0] != valueVersion {
		return fmt.Errorf("%w: version %d", ErrCorrupt, value[0])
	}
	body, sum := value[:len(value)-4], value[len(value)-4:]
	if crc32.Checksum(body, castagnoli) != binary.BigEndian.Uint32(sum) {
		return fmt.Errorf("%w: checksum", ErrCorrupt)
	}
	for rest := body[1:]; len(rest) > 0; {
		tag, n := binary.Uvarint(rest)
		if n <= 0 || tag == 0 {
			return fmt.Errorf("%w: field tag", ErrCorrupt)
		}
		size, m := binary.Uvarint(rest[n:])
		if m <= 0 || size > uint64(len(rest)-n-m) {
			return fmt.Errorf("%w: field length", ErrCorrupt)
		}
		content := rest[n+m : n+m+int(size)]
		if err := f(tag, content); err != nil {
			return err
		}
		rest = rest[n+m+int(size):]
	}
	return nil
}

func fieldUint(content []byte) (uint64, error) {
	v, n := binary.Uvarint(content)
	if n != len(content) || n <= 0 {
		return 0, fmt.Errorf("%w: number", ErrCorrupt)
	}
	return v, nil
}
