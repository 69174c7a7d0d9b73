package ingesttest

import (
	"bytes"
	"compress/zlib"
	"crypto/md5"
	"crypto/rc4"
	"encoding/binary"
	"fmt"
	"io"
	"strings"
)

// PDF is a document of pages of lines. A page named in Scanned is one picture and no text; so is nothing on an empty
// page. UserPassword or OwnerPassword encrypt it (RC4 of 128 bits, revision 3 of the standard handler).
type PDF struct {
	Pages         [][]string
	Scanned       map[int]bool // by number, from 1
	Packed        bool         // contents are packed, with a checksum
	Damaged       map[int]bool // pages of which some packed bytes are zero
	Forms         bool         // what a page shows stands in a form that it draws
	Encrypt       bool
	UserPassword  string
	OwnerPassword string
	Loop          bool // its pages point back to themselves
	Endless       bool // its first page draws a form of 16 MB, packed to some KB, a thousand times: it takes minutes
}

const pdfID = "0123456789abcdef"

// Bytes is the file.
func (p PDF) Bytes() []byte {
	w := &pdfWriter{key: p.key()}
	w.out.WriteString("%PDF-1.6\n%\xE2\xE3\xCF\xD3\n")
	var kids []string
	for i := range p.Pages {
		kids = append(kids, fmt.Sprintf("%d 0 R", 10+2*i))
	}
	if p.Loop {
		kids = append(kids, "2 0 R")
	}
	w.object(1, "<< /Type /Catalog /Pages 2 0 R >>")
	w.object(2, fmt.Sprintf("<< /Type /Pages /Count %d /Kids [%s] >>", len(p.Pages), strings.Join(kids, " ")))
	w.object(3, "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>")
	w.stream(4, "/Type /XObject /Subtype /Image /Width 1 /Height 1 /ColorSpace /DeviceGray /BitsPerComponent 8", "\x80")
	uses := 0
	if p.Endless {
		w.endless()
		uses = formUses
	}
	for i, lines := range p.Pages {
		own := 10 + 2*len(p.Pages) + i // the form of the page
		w.object(10+2*i, fmt.Sprintf("<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents %d 0 R /Resources << /Font << /F1 3 0 R >> /XObject << /Im1 4 0 R /Fm1 6 0 R /Fm2 %d 0 R >> >> >>", 11+2*i, own))
		shows := content(lines, p.Scanned[i+1]) + strings.Repeat("/Fm1 Do\n", uses)
		if p.Forms {
			w.content(own, "/Type /XObject /Subtype /Form /BBox [0 0 612 792] /Resources << /Font << /F1 3 0 R >> >>", shows, p.Packed, p.Damaged[i+1])
			w.stream(11+2*i, "", "/Fm2 Do\n")
			continue
		}
		w.content(11+2*i, "", shows, p.Packed, p.Damaged[i+1])
	}
	return w.end(p)
}

func content(lines []string, scanned bool) string {
	var b strings.Builder
	if scanned {
		b.WriteString("q 612 0 0 792 0 0 cm /Im1 Do Q\n")
	}
	for i, line := range lines {
		line = strings.NewReplacer(`\`, `\\`, "(", `\(`, ")", `\)`).Replace(line)
		fmt.Fprintf(&b, "BT /F1 11 Tf 72 %d Td (%s) Tj ET\n", 720-14*i, line)
	}
	return b.String()
}

// form is the object that an endless page draws, and formUses how often.
const (
	form     = 6
	formUses = 1000
)

func (w *pdfWriter) endless() {
	var packed bytes.Buffer
	z := zlib.NewWriter(&packed)
	_, err := io.Copy(z, Repeat("", "q Q\n", 4<<20, ""))
	must(err)
	must(z.Close())
	w.stream(form, "/Type /XObject /Subtype /Form /BBox [0 0 9 9] /Filter /FlateDecode", packed.String())
}

// content is a stream, packed or not; a damaged one has lost half of its packed bytes to zeros.
func (w *pdfWriter) content(n int, dict, body string, packed, damaged bool) {
	if !packed {
		w.stream(n, dict, body)
		return
	}
	var b bytes.Buffer
	z := zlib.NewWriter(&b)
	_, err := io.WriteString(z, body)
	must(err)
	must(z.Close())
	if damaged {
		clear(b.Bytes()[b.Len()/2:])
	}
	w.stream(n, dict+" /Filter /FlateDecode", b.String())
}

type pdfWriter struct {
	out  bytes.Buffer
	at   map[int]int
	last int
	key  []byte
}

func (w *pdfWriter) begin(n int) {
	if w.at == nil {
		w.at = map[int]int{}
	}
	w.at[n], w.last = w.out.Len(), max(w.last, n)
	fmt.Fprintf(&w.out, "%d 0 obj\n", n)
}

func (w *pdfWriter) object(n int, body string) {
	w.begin(n)
	fmt.Fprintf(&w.out, "%s\nendobj\n", body)
}

func (w *pdfWriter) stream(n int, dict, body string) {
	data := []byte(body)
	if w.key != nil {
		own := md5.Sum(append(bytes.Clone(w.key), byte(n), byte(n>>8), byte(n>>16), 0, 0))
		crypt(own[:], data)
	}
	w.begin(n)
	fmt.Fprintf(&w.out, "<< %s /Length %d >>\nstream\n%s\nendstream\nendobj\n", dict, len(data), data)
}

func (w *pdfWriter) end(p PDF) []byte {
	trailer := "/Root 1 0 R"
	if w.key != nil {
		w.object(5, fmt.Sprintf("<< /Filter /Standard /V 2 /R 3 /Length 128 /P %d /O <%x> /U <%x> >>", permissions, p.ownerEntry(), p.userEntry()))
		trailer += " /Encrypt 5 0 R"
	}
	start := w.out.Len()
	fmt.Fprintf(&w.out, "xref\n0 %d\n0000000000 65535 f \n", w.last+1)
	for n := 1; n <= w.last; n++ {
		if at, ok := w.at[n]; ok {
			fmt.Fprintf(&w.out, "%010d 00000 n \n", at)
		} else {
			w.out.WriteString("0000000000 65535 f \n")
		}
	}
	fmt.Fprintf(&w.out, "trailer\n<< /Size %d %s /ID [<%x> <%x>] >>\nstartxref\n%d\n%%%%EOF\n", w.last+1, trailer, pdfID, pdfID, start)
	return w.out.Bytes()
}

// permissions forbid to copy and to print: only whoever ignores them may read.
var permissions int32 = -3904

const padding = "\x28\xBF\x4E\x5E\x4E\x75\x8A\x41\x64\x00\x4E\x56\xFF\xFA\x01\x08\x2E\x2E\x00\xB6\xD0\x68\x3E\x80\x2F\x0C\xA9\xFE\x64\x53\x69\x7A"

func padded(password string) []byte { return []byte(password + padding)[:32] }

func crypt(key, data []byte) {
	c, err := rc4.NewCipher(key)
	must(err)
	c.XORKeyStream(data, data)
}

// rounds encrypts 20 times, each with another key, as revision 3 does.
func rounds(key, data []byte) []byte {
	data = bytes.Clone(data)
	for i := range 20 {
		own := bytes.Clone(key)
		for j := range own {
			own[j] ^= byte(i)
		}
		crypt(own, data)
	}
	return data
}

func digest(data []byte) []byte {
	sum := md5.Sum(data)
	for range 50 {
		sum = md5.Sum(sum[:])
	}
	return sum[:]
}

func (p PDF) ownerEntry() []byte {
	owner := p.OwnerPassword
	if owner == "" {
		owner = p.UserPassword
	}
	return rounds(digest(padded(owner)), padded(p.UserPassword))
}

// key is the file's key; nil if it is not encrypted.
func (p PDF) key() []byte {
	if !p.Encrypt && p.UserPassword == "" && p.OwnerPassword == "" {
		return nil
	}
	data := append(padded(p.UserPassword), p.ownerEntry()...)
	data = binary.LittleEndian.AppendUint32(data, uint32(permissions))
	return digest(append(data, pdfID...))
}

func (p PDF) userEntry() []byte {
	sum := md5.Sum(append([]byte(padding), pdfID...))
	return append(rounds(p.key(), sum[:]), make([]byte, 16)...)
}
