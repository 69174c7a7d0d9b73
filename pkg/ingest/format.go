package ingest

import (
	"bytes"
	"fmt"
)

// format is what a file is, by its content: names lie.
type format int

const (
	formatText format = iota // or nothing that is known
	formatPDF
	formatZIP
)

// pdfWithin is how far into a file PDF's mark may stand: mail gateways put lines before it.
const pdfWithin = 1024

func detect(source []byte) format {
	begin := beginning(source)
	head := source[:min(len(source), pdfWithin)]
	switch {
	case bytes.HasPrefix(begin, []byte("%PDF-")):
		return formatPDF
	case bytes.Contains(head, []byte("%PDF-")) && bytes.Contains(source, []byte("startxref")):
		return formatPDF
	case bytes.HasPrefix(begin, []byte("PK\x03\x04")), bytes.HasPrefix(begin, []byte("PK\x05\x06")):
		return formatZIP
	}
	return formatText
}

func beginning(source []byte) []byte {
	return bytes.TrimLeft(bytes.TrimPrefix(source, []byte(bomUTF8)), " \t\r\n")
}

const officeMagic = "\xD0\xCF\x11\xE0\xA1\xB1\x1A\xE1"

const supported = "DOCX, PDF and plain text (UTF-8, UTF-16, Windows-1252) are read"

// formats are files that people submit as documents and that are not read, by how they begin.
var formats = []struct{ magic, name, do string }{
	{"{\\rtf", "an RTF file", "save it as DOCX or PDF"},
	{"\x89PNG", "a picture (PNG)", "run text recognition (OCR) on it first"},
	{"\xFF\xD8\xFF", "a picture (JPEG)", "run text recognition (OCR) on it first"},
	{"II*\x00", "a picture (TIFF)", "run text recognition (OCR) on it first"},
	{"MM\x00*", "a picture (TIFF)", "run text recognition (OCR) on it first"},
	{"GIF8", "a picture (GIF)", "run text recognition (OCR) on it first"},
	{"\x1F\x8B", "a packed file (gzip)", "unpack it"},
	{"7z\xBC\xAF\x27\x1C", "a packed file (7-Zip)", "unpack it"},
	{"Rar!\x1A\x07", "a packed file (RAR)", "unpack it"},
	{"%!PS-", "a PostScript file", "print it to a PDF"},
}

// refused says why a source that is no text of any kind is not read; nil if it may be text.
func refused(source []byte) error {
	begin := beginning(source)
	if bytes.HasPrefix(begin, []byte(officeMagic)) {
		return refusedOffice(source)
	}
	for _, f := range formats {
		if bytes.HasPrefix(begin, []byte(f.magic)) {
			return fmt.Errorf("%w: it is %s; %s; %s and submit that", ErrFormat, f.name, supported, f.do)
		}
	}
	return nil
}

// refusedOffice tells the files apart that are a compound file, by the names of the streams in it.
func refusedOffice(source []byte) error {
	holds := func(stream string) bool {
		var name []byte
		for _, c := range []byte(stream) {
			name = append(name, c, 0)
		}
		return bytes.Contains(source, append(name, 0, 0))
	}
	switch {
	case holds("EncryptedPackage"):
		return fmt.Errorf("%w: it is an Office document that opens only with a password; open it in Word, take the password off (File, Info, Protect Document) and submit that", ErrEncrypted)
	case holds("WordDocument"):
		return fmt.Errorf("%w: it is a document of the old Word format (.doc); %s; save it as DOCX and submit that", ErrFormat, supported)
	case holds("Workbook"), holds("PowerPoint Document"):
		return fmt.Errorf("%w: it is a workbook or presentation of the old Office format; %s; save it as PDF and submit that", ErrFormat, supported)
	}
	return fmt.Errorf("%w: it is a compound file of Windows (an old Office format, or a mail of Outlook); %s; save it as DOCX or PDF and submit that", ErrFormat, supported)
}
