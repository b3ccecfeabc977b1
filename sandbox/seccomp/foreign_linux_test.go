package seccomp

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"
)

// foreignProgram ends with foreignExit by one call of the other ABI that a machine has.
type foreignProgram struct {
	feature string // for ATIP_REQUIRE: not every processor and kernel has it
	code    []byte
	machine elf.Machine
	wide    bool // a 64-bit program that makes a 32-bit call
}

const foreignExit = 42

func foreignPrograms() map[string]foreignProgram {
	return map[string]foreignProgram{
		"amd64": {feature: "ia32", machine: elf.EM_X86_64, wide: true, code: []byte{
			0xbb, foreignExit, 0, 0, 0, // mov ebx, 42
			0xb8, 1, 0, 0, 0, // mov eax, 1
			0xcd, 0x80, // int 0x80
			0x0f, 0x0b, // ud2
		}},
		"arm64": {feature: "aarch32", machine: elf.EM_ARM, code: []byte{
			foreignExit, 0x00, 0xa0, 0xe3, // mov r0, #42
			0x01, 0x70, 0xa0, 0xe3, // mov r7, #1
			0x00, 0x00, 0x00, 0xef, // svc #0
			0xf0, 0x00, 0xf0, 0xe7, // udf #0
		}},
	}
}

// write writes the program as an executable of one segment.
func (p foreignProgram) write(t *testing.T) string {
	t.Helper()
	const (
		base   = 0x400000
		eabi5  = 0x05000000 // the kernel starts no older 32-bit ARM program
		length = 0x1000
	)
	ident := [elf.EI_NIDENT]byte{0x7f, 'E', 'L', 'F', byte(elf.ELFCLASS32), byte(elf.ELFDATA2LSB), byte(elf.EV_CURRENT)}
	var file bytes.Buffer
	put := func(v any) {
		if err := binary.Write(&file, binary.LittleEndian, v); err != nil {
			t.Fatal(err)
		}
	}
	if p.wide {
		ident[elf.EI_CLASS] = byte(elf.ELFCLASS64)
		put(elf.Header64{Ident: ident, Type: uint16(elf.ET_EXEC), Machine: uint16(p.machine), Version: 1, Entry: base + 120, Phoff: 64, Ehsize: 64, Phentsize: 56, Phnum: 1})
		put(elf.Prog64{Type: uint32(elf.PT_LOAD), Flags: uint32(elf.PF_R | elf.PF_X), Vaddr: base, Paddr: base, Filesz: 120 + uint64(len(p.code)), Memsz: 120 + uint64(len(p.code)), Align: length})
	} else {
		put(elf.Header32{Ident: ident, Type: uint16(elf.ET_EXEC), Machine: uint16(p.machine), Version: 1, Entry: base + 84, Phoff: 52, Flags: eabi5, Ehsize: 52, Phentsize: 32, Phnum: 1})
		put(elf.Prog32{Type: uint32(elf.PT_LOAD), Flags: uint32(elf.PF_R | elf.PF_X), Vaddr: base, Paddr: base, Filesz: 84 + uint32(len(p.code)), Memsz: 84 + uint32(len(p.code)), Align: length})
	}
	file.Write(p.code)
	path := filepath.Join(t.TempDir(), "foreign")
	if err := os.WriteFile(path, file.Bytes(), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}
