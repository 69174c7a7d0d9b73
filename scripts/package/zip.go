package main

import (
	"archive/zip"
	"compress/flate"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"os"
	"time"
)

// entry is the name under which Lambda starts a program.
const entry = "bootstrap"

// epoch is the time of every entry: the first that a zip can say.
var epoch = time.Date(1980, 1, 1, 0, 0, 0, 0, time.UTC)

// zipFile writes a zip with the program alone in it. The same program gives the same bytes.
func zipFile(to, program string) (err error) {
	from, err := os.Open(program)
	if err != nil {
		return err
	}
	defer from.Close()
	file, err := os.Create(to)
	if err != nil {
		return err
	}
	defer func() {
		if closed := file.Close(); err == nil {
			err = closed
		}
	}()
	return writeZip(file, from)
}

func writeZip(to io.Writer, program io.Reader) error {
	z := zip.NewWriter(to)
	z.RegisterCompressor(zip.Deflate, func(w io.Writer) (io.WriteCloser, error) { return flate.NewWriter(w, flate.BestCompression) })
	header := &zip.FileHeader{Name: entry, Method: zip.Deflate, Modified: epoch}
	header.SetMode(0o755)
	w, err := z.CreateHeader(header)
	if err != nil {
		return err
	}
	if _, err := io.Copy(w, program); err != nil {
		return err
	}
	return z.Close()
}

// sumOf is a file's SHA-256 and size.
func sumOf(path string) (sum string, bytes int64, err error) {
	file, err := os.Open(path)
	if err != nil {
		return "", 0, err
	}
	defer file.Close()
	hash := sha256.New()
	bytes, err = io.Copy(hash, file)
	return hex.EncodeToString(hash.Sum(nil)), bytes, err
}
