package keeper

import (
	"strconv"

	"golang.org/x/sys/unix"

	"spoolfs/fs/shm"
)

// refuse answers a request with EIO, between two workers.
func (k *Keeper) refuse(r shm.Request) error {
	unique := r.Unique
	if r.Resent {
		unique |= shm.Resent
	}
	err := k.device.Refuse(unique, unix.EIO)
	k.memory.Drop(r.Slot)
	return err
}

// operations are those that a worker may die of, of include/uapi/linux/fuse.h.
var operations = map[uint32]string{
	1: "LOOKUP", 3: "GETATTR", 4: "SETATTR", 9: "MKDIR", 10: "UNLINK", 11: "RMDIR", 12: "RENAME", 14: "OPEN", 15: "READ",
	16: "WRITE", 17: "STATFS", 18: "RELEASE", 20: "FSYNC", 25: "FLUSH", 27: "OPENDIR", 28: "READDIR", 34: "ACCESS",
	35: "CREATE", 45: "RENAME2",
}

// operation names an operation.
func operation(opcode uint32) string {
	if name, ok := operations[opcode]; ok {
		return name
	}
	return strconv.Itoa(int(opcode))
}
