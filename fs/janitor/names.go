package janitor

import (
	"crypto/rand"
	"encoding/hex"
	"strings"

	"spoolfs/queue"

	"crypto/sha256"
	"encoding/binary"
)

// The names of our own directories begin with ownPrefix. A claim is
// .spoolfs-claim.<id of the store>.<random>, and freeID that of claims that
// anybody may take over at once.
const (
	ownPrefix      = ".spoolfs-"
	claimPrefix    = ".spoolfs-claim."
	quarantineName = ".spoolfs-quarantine"
	idLength       = 16
	freeID         = "0000000000000000"
)

// NewID draws the id of a store.
func NewID() string {
	b := make([]byte, idLength/2)
	rand.Read(b) // never fails
	return hex.EncodeToString(b)
}

func claimName(id string) string { return claimPrefix + id + "." + NewID() }

// claimOwner is the store whose claim a name is; "" if it is none.
func claimOwner(name string) string {
	rest, ok := strings.CutPrefix(name, claimPrefix)
	if !ok || len(rest) <= idLength || rest[idLength] != '.' {
		return ""
	}
	return rest[:idLength]
}

// isHeld reports whether a name waits for its rename, as in the mount.
func isHeld(name string) bool {
	return strings.HasPrefix(name, ".") || strings.HasSuffix(name, ".tmp") ||
		strings.HasSuffix(name, ".part") || strings.HasSuffix(name, ".inflight")
}

// FileID is the id that a janitor gives a file of a name and a content.
func FileID(name string, content []byte) queue.FileID { return fileID(name, content) }

// fileID is the id of a file: the same for whoever finds it, so that what is
// taken twice, by two hosts or because of a crash, has the same message ids.
func fileID(label string, content []byte) queue.FileID {
	h := sha256.New()
	h.Write(binary.BigEndian.AppendUint32(nil, uint32(len(label))))
	h.Write([]byte(label))
	h.Write(content)
	return queue.FileID(h.Sum(nil)[:16])
}
