package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"time"
)

// The media of the incident: a container of parts, each an id of 4 bytes, a size of 4 bytes, and so many bytes. The
// decoder trusts the size: one of -8 leaves it where it is, for ever. `incident decode FILE` is the command.

// decodesFile names the file to which every decode writes a line when it starts: the witness of what was run.
const decodesFile = "HOLDFAST_INCIDENT_DECODES"

const partHead = 8

// media is a good file of so many parts.
func media(parts int) []byte {
	var b []byte
	for n := range parts {
		b = append(b, "part"...)
		b = binary.LittleEndian.AppendUint32(b, 16)
		b = append(b, fmt.Sprintf("%016d", n)...)
	}
	return b
}

// corrupt is a file with a size of -8 in the middle.
func corrupt(parts int) []byte {
	b := media(parts)
	at := parts / 2 * (partHead + 16)
	binary.LittleEndian.PutUint32(b[at+4:], 0xFFFFFFF8)
	return b
}

// decodeMain is the command: it prints how many parts the file has.
func decodeMain(path string) int {
	parts, err := decode(path)
	if err != nil {
		fmt.Fprintln(os.Stderr, "decode:", err)
		return 65 // this file can never be decoded
	}
	fmt.Println(parts)
	return 0
}

func decode(path string) (parts int, err error) {
	if err := noteDecode(path); err != nil {
		return 0, err
	}
	body, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	for at := 0; at < len(body); parts++ {
		if at+partHead > len(body) {
			return 0, errors.New("cut off")
		}
		size := int32(binary.LittleEndian.Uint32(body[at+4:]))
		at += partHead + int(size)
		time.Sleep(time.Millisecond) // decoding a part takes its time
	}
	return parts, nil
}

// noteDecode puts one line with one write, so that lines of several processes never mix.
func noteDecode(path string) error {
	name := os.Getenv(decodesFile)
	if name == "" {
		return nil
	}
	file, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer file.Close()
	_, err = file.WriteString(path + "\n")
	return err
}
