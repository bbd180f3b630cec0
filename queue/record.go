package queue

import (
	"encoding/binary"
	"fmt"
	"time"
)

// Tags of the fields of a record, the stored form of a Message. See fields.go
// for the envelope; testdata/record-v1*.golden hold one of each.
const (
	tagID       = 1 // file id (16 bytes), line uvarint; or
	tagIDText   = 2 // an ID of any other form
	tagIngested = 3 // nanoseconds since 1970
	tagFile     = 4
	tagUID      = 5
	tagLine     = 6 // where it differs from the line in tagID
	tagAttempts = 7
	tagWord     = 8 // one field for each word
	tagKey      = 9
	tagExchange = 10
	tagPubTime  = 11 // nanoseconds since 1970
	tagType     = 12
	tagEncoding = 13
	tagHeaders  = 14 // empty: there is a header table
	tagHeader   = 15 // length of name uvarint, name, value
	tagBody     = 16
	tagReason   = 17
	tagPartial  = 18 // 1 in a partial file
	tagJSON     = 19 // as tagHeader, of a value in JSON
	tagProperty = 20 // as tagHeader
	tagSubject  = 21
)

// encodeRecord returns the stored form of m.
func encodeRecord(m *Message) []byte {
	w := newFieldWriter(len(m.Body) + 128)
	encodeOrigin(w, m)
	encodeRouting(w, m)
	w.text(tagType, m.ContentType)
	w.text(tagEncoding, m.ContentEncoding)
	if m.Headers != nil {
		w.field(tagHeaders, "")
	}
	for _, h := range m.Headers {
		tag := uint64(tagHeader)
		if h.JSON {
			tag = tagJSON
		}
		w.field(tag, encodePair(h.Name, h.Value))
	}
	for _, p := range m.Properties {
		w.field(tagProperty, encodePair(p.Name, p.Value))
	}
	if len(m.Body) > 0 {
		w.bytes(tagBody, m.Body)
	}
	w.text(tagReason, m.Reason)
	if m.Partial {
		w.uint(tagPartial, 1)
	}
	return w.finish()
}

func encodeOrigin(w *fieldWriter, m *Message) {
	line := uint32(0)
	if f, l, ok := m.ID.split(); ok {
		w.bytes(tagID, binary.AppendUvarint(f[:], uint64(l)))
		line = l
	} else {
		w.text(tagIDText, string(m.ID))
	}
	w.uint(tagIngested, unixNano(m.Ingested))
	w.text(tagFile, m.File)
	w.uint(tagUID, uint64(m.UID))
	if m.Line != line {
		w.field(tagLine, string(binary.AppendUvarint(nil, uint64(m.Line))))
	}
	w.uint(tagAttempts, uint64(m.Attempts))
	w.text(tagSubject, m.Subject)
}

func encodeRouting(w *fieldWriter, m *Message) {
	for _, word := range m.Words {
		w.field(tagWord, word)
	}
	if m.HasKey {
		w.field(tagKey, m.Key)
	}
	w.text(tagExchange, m.Exchange)
	w.uint(tagPubTime, unixNano(m.PubTime))
}

// decodeRecord is the inverse of encodeRecord. The message does not alias value.
func decodeRecord(value []byte) (*Message, error) {
	m := new(Message)
	if err := eachField(value, m.setField); err != nil {
		return nil, err
	}
	return m, nil
}

func (m *Message) setField(tag uint64, content []byte) error {
	switch tag {
	case tagID:
		return m.setID(content)
	case tagIDText:
		m.ID = ID(content)
	case tagFile:
		m.File = string(content)
	case tagWord:
		m.Words = append(m.Words, string(content))
	case tagKey:
		m.Key, m.HasKey = string(content), true
	case tagExchange:
		m.Exchange = string(content)
	case tagType:
		m.ContentType = string(content)
	case tagEncoding:
		m.ContentEncoding = string(content)
	case tagHeaders:
		m.Headers = []Header{}
	case tagHeader, tagJSON, tagProperty:
		return m.addPair(tag, content)
	case tagBody:
		m.Body = append([]byte(nil), content...)
	case tagReason:
		m.Reason = string(content)
	case tagSubject:
		m.Subject = string(content)
	default:
		return m.setNumber(tag, content)
	}
	return nil
}

func (m *Message) setNumber(tag uint64, content []byte) error {
	switch tag {
	case tagIngested, tagUID, tagLine, tagAttempts, tagPubTime, tagPartial:
	default:
		return nil // of a later minor version
	}
	v, err := fieldUint(content)
	if err != nil {
		return err
	}
	switch tag {
	case tagIngested:
		m.Ingested = time.Unix(0, int64(v))
	case tagUID:
		m.UID = uint32(v)
	case tagLine:
		m.Line = uint32(v)
	case tagAttempts:
		m.Attempts = uint32(v)
	case tagPubTime:
		m.PubTime = time.Unix(0, int64(v))
	case tagPartial:
		m.Partial = v != 0
	}
	return nil
}

func (m *Message) setID(content []byte) error {
	var f FileID
	if len(content) <= len(f) {
		return fmt.Errorf("%w: id", ErrCorrupt)
	}
	copy(f[:], content)
	line, err := fieldUint(content[len(f):])
	if err != nil {
		return err
	}
	m.ID, m.Line = f.MessageID(uint32(line)), uint32(line)
	return nil
}

// encodePair returns the stored form of a name and its value.
func encodePair(name, value string) string {
	return string(binary.AppendUvarint(nil, uint64(len(name)))) + name + value
}

func (m *Message) addPair(tag uint64, content []byte) error {
	n, k := binary.Uvarint(content)
	if k <= 0 || n > uint64(len(content)-k) {
		return fmt.Errorf("%w: header", ErrCorrupt)
	}
	name, value := string(content[k:k+int(n)]), string(content[k+int(n):])
	if tag == tagProperty {
		m.Properties = append(m.Properties, Property{name, value})
	} else {
		m.Headers = append(m.Headers, Header{name, value, tag == tagJSON})
	}
	return nil
}

// unixNano maps the zero time to 0, which is not stored.
func unixNano(t time.Time) uint64 {
	if t.IsZero() {
		return 0
	}
	return uint64(t.UnixNano())
}
