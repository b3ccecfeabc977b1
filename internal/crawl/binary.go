package crawl

import (
	"bytes"
	"crypto/sha256"
	"debug/elf"
	"debug/macho"
	"debug/pe"
	"encoding/hex"
	"errors"
	"io"
	"os"
)

// maxBinary is the most that is read of one executable.
const maxBinary = 1 << 30

// digest reads a regular file of a bounded size.
func digest(file string) (hexSum string, err error) {
	info, err := os.Stat(file)
	switch {
	case err != nil:
		return "", err
	case !info.Mode().IsRegular():
		return "", errors.New(file + " is not a regular file")
	case info.Size() == 0 || info.Size() > maxBinary:
		return "", errors.New(file + " is empty or larger than 1 GiB")
	}
	f, err := os.Open(file)
	if err != nil {
		return "", err
	}
	defer f.Close()
	sum := sha256.New()
	if n, err := io.Copy(sum, io.LimitReader(f, maxBinary)); err != nil || n != info.Size() {
		return "", errors.Join(errors.New(file+" changed while it was read"), err)
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// platformOf reads from the file itself which machine it is for; "any" for a script, ""
// if that cannot be told. What a package or a file name says is a label and no more.
func platformOf(file string) string {
	f, err := os.Open(file)
	if err != nil {
		return ""
	}
	defer f.Close()
	head := make([]byte, 4)
	if _, err := io.ReadFull(f, head); err != nil {
		return ""
	}
	switch {
	case bytes.HasPrefix(head, []byte("#!")):
		return "any"
	case bytes.Equal(head, []byte(elf.ELFMAG)):
		x, err := elf.NewFile(f)
		if err != nil {
			return ""
		}
		system := "linux"
		switch x.OSABI {
		case elf.ELFOSABI_FREEBSD:
			system = "freebsd"
		case elf.ELFOSABI_OPENBSD:
			system = "openbsd"
		case elf.ELFOSABI_NETBSD:
			system = "netbsd"
		}
		return joined(system, map[elf.Machine]string{elf.EM_X86_64: "amd64", elf.EM_AARCH64: "arm64", elf.EM_386: "386", elf.EM_ARM: "arm",
			elf.EM_RISCV: "riscv64", elf.EM_PPC64: "ppc64le", elf.EM_S390: "s390x"}[x.Machine])
	case bytes.HasPrefix(head, []byte("MZ")):
		x, err := pe.NewFile(f)
		if err != nil {
			return ""
		}
		return joined("windows", map[uint16]string{pe.IMAGE_FILE_MACHINE_AMD64: "amd64", pe.IMAGE_FILE_MACHINE_ARM64: "arm64", pe.IMAGE_FILE_MACHINE_I386: "386"}[x.Machine])
	}
	if x, err := macho.NewFile(f); err == nil {
		return joined("darwin", map[macho.Cpu]string{macho.CpuAmd64: "amd64", macho.CpuArm64: "arm64"}[x.Cpu])
	}
	if x, err := macho.NewFatFile(f); err == nil && len(x.Arches) > 0 {
		return "darwin" // for several machines at once
	}
	return ""
}

func joined(system, arch string) string {
	if arch == "" {
		return system
	}
	return system + "-" + arch
}
