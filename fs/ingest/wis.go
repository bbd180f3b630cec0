package ingest

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"spoolfs/queue"
)

// encodeWIS completes a message that is published in the format of the WMO's
// information system: a GeoJSON object, of which sr3 makes an experiment. It does
// what sr3 does, but that a message without a size, at which sr3 loses a batch,
// has a link without a length, and that the id is the same each time.
func encodeWIS(m *queue.Message, fields members, id string) {
	fields, _ = fields.unique()
	m.ContentType, m.ContentEncoding = "application/geo+json", "utf-8"
	m.Headers = []queue.Header{}
	properties, own := wisProperties(fields)
	body := members{
		{key: []byte(`"type"`), value: []byte(`"Feature"`)},
		{key: []byte(`"geometry"`), value: []byte("null")},
		{key: []byte(`"properties"`), value: properties.render()},
		{key: []byte(`"version"`), value: []byte(`"v04"`)},
		{key: []byte(`"id"`), value: []byte(`"` + id + `"`)},
		{key: []byte(`"links"`), value: wisLinks(fields)},
	}
	if geometry, ok := fields.last("geometry"); ok {
		body[1].value = geometry
	}
	if own { // which sr3 leaves among the properties
		body = append(body[:4], body[5])
	}
	m.Body = body.render()
}

// wisProperties are the fields that have no place elsewhere, behind those of a
// record's own properties. It reports whether there is an id among them.
func wisProperties(fields members) (properties members, id bool) {
	value, _ := fields.last("properties")
	properties = objectMembers(value)
	for _, f := range fields {
		switch string(f.name) {
		case "contentType", "geometry", "properties", "size", "baseUrl", "relPath", "retrievePath", "subtopic",
			"pubTime", "to_clusters", "from_cluster", "filename", "sundew_extension", "mtime", "atime", "mode",
			"identity", "topic", "_format":
			continue
		case "id":
			id = true
		}
		properties = append(properties, f)
	}
	properties = append(properties, member{key: []byte(`"pubtime"`), name: []byte("pubtime"), value: isoTime(fields)})
	properties, _ = properties.unique()
	return properties, id
}

// isoTime writes the time of publication with hyphens and colons.
func isoTime(fields members) []byte {
	value, _ := fields.last("pubTime")
	text, _ := stringValue(value)
	t := strings.Replace(string(text), "T", "", 1) // YYYYMMDDHHMMSS[.fraction], as checkMandatory has seen
	return []byte(`"` + t[:4] + "-" + t[4:6] + "-" + t[6:8] + "T" + t[8:10] + ":" + t[10:12] + ":" + t[12:] + `Z"`)
}

// wisLinks says where the data is.
func wisLinks(fields members) []byte {
	base, _ := fields.last("baseUrl")
	path, ok := fields.last("retrievePath")
	if _, isString := stringValue(path); !ok || !isString {
		path, _ = fields.last("relPath")
	}
	// The texts of two strings are joined as they stand, so that no escape in
	// them is touched.
	href := append(bytes.TrimSuffix(bytes.Clone(base), []byte(`"`)), '/')
	href = append(href, path[1:]...)
	link := members{
		{key: []byte(`"rel"`), value: []byte(`"canonical"`)},
		{key: []byte(`"href"`), value: href},
	}
	for _, f := range [...][2]string{{"size", `"length"`}, {"contentType", `"type"`}} {
		if value, ok := fields.last(f[0]); ok {
			link = append(link, member{key: []byte(f[1]), value: value})
		}
	}
	return append(append([]byte{'['}, link.render()...), ']')
}

// wisID makes a UUID of the custom version (RFC 9562, version 8) from what
// identifies a message, so that it is drawn with the file and never again.
func wisID(id queue.ID) string {
	sum := sha256.Sum256([]byte(id))
	u := sum[:16]
	u[6] = u[6]&0x0f | 0x80
	u[8] = u[8]&0x3f | 0x80
	h := hex.EncodeToString(u)
	return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
}

// wisKey is the routing key of a message in that format: its topic, with dots for
// slashes, and nothing without one.
func wisKey(all, public members) string {
	for _, value := range [][]byte{first(all.last("post_topic")), first(public.last("topic"))} {
		if text, ok := stringValue(value); ok {
			if key := strings.ReplaceAll(string(text), "/", "."); usable(key) {
				return key
			}
		}
	}
	return ""
}

func first(value []byte, _ bool) []byte { return value }
