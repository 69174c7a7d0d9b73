package docx

import (
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"

	"holdfast/pkg/ingest/unread"
)

// Limits bound what a file may cost, whatever its headers say.
type Limits struct {
	Entries int   // files in the package
	Part    int64 // bytes that one part may expand to
	Total   int64 // bytes that all parts that are read may expand to
	Ratio   int64 // how many times its compressed size a part may expand to, once it is larger than 4 MB
	Depth   int   // elements within each other
	Text    int   // bytes of text
}

// DefaultLimits are far above what any contract needs.
var DefaultLimits = Limits{Entries: 10_000, Part: 48 << 20, Total: 96 << 20, Ratio: 300, Depth: 400, Text: 32 << 20}

// ratioFrom is the size from which the ratio counts: small parts may well repeat themselves.
const ratioFrom = 4 << 20

// pack is the ZIP package. It opens only the parts that are asked for: pictures are never expanded.
type pack struct {
	files  map[string]*zip.File // by name in lower case, as Word compares them
	limits Limits
	read   int64 // bytes expanded so far
}

func openPack(source []byte, limits Limits) (*pack, error) {
	r, err := zip.NewReader(bytes.NewReader(source), int64(len(source)))
	if err != nil && !errors.Is(err, zip.ErrInsecurePath) {
		return nil, fmt.Errorf("%w: it begins like a ZIP file (a DOCX is one) and is none to its end (%v); get the file again, or save it again with Word", unread.ErrDamaged, err)
	}
	if len(r.File) > limits.Entries {
		return nil, fmt.Errorf("%w: it is a ZIP file of %d files, the limit is %d; a Word document has some dozens", unread.ErrTooLarge, len(r.File), limits.Entries)
	}
	p := &pack{files: make(map[string]*zip.File, len(r.File)), limits: limits}
	for _, f := range r.File {
		if err := p.add(f); err != nil {
			return nil, err
		}
	}
	return p, nil
}

func (p *pack) add(f *zip.File) error {
	name := partName(f.Name)
	if path.IsAbs(name) || name == ".." || strings.HasPrefix(name, "../") || strings.Contains(name, ":") {
		return fmt.Errorf("%w: its file %q points out of it, which no Word document does", unread.ErrDamaged, f.Name)
	}
	if strings.HasSuffix(f.Name, "/") {
		return nil
	}
	if _, twice := p.files[name]; twice {
		return fmt.Errorf("%w: it holds %q twice, so nobody can say which one counts; save it again with Word", unread.ErrDamaged, f.Name)
	}
	p.files[name] = f
	return nil
}

func partName(name string) string {
	return strings.ToLower(path.Clean(strings.ReplaceAll(name, `\`, "/")))
}

func (p *pack) has(name string) bool { return p.files[partName(name)] != nil }

// holds says that there is a part whose name begins so.
func (p *pack) holds(prefix string) bool {
	for name := range p.files {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}

// open is the part as a stream that ends with an error when it expands beyond a limit.
func (p *pack) open(name string) (io.ReadCloser, error) {
	f := p.files[partName(name)]
	if f == nil {
		return nil, fmt.Errorf("%w: its part %s is missing; save it again with Word", unread.ErrDamaged, name)
	}
	if f.Flags&1 != 0 {
		return nil, fmt.Errorf("%w: its part %s is encrypted; save it without a password and submit that", unread.ErrEncrypted, name)
	}
	r, err := f.Open()
	if err != nil {
		return nil, fmt.Errorf("%w: its part %s cannot be expanded (%v); save it again with Word", unread.ErrDamaged, name, err)
	}
	return &counted{ReadCloser: r, pack: p, name: name, packed: int64(f.CompressedSize64)}, nil
}

// counted counts the bytes that really come out: what a header says about them may be a lie.
type counted struct {
	io.ReadCloser
	pack   *pack
	name   string
	packed int64
	n      int64
}

func (c *counted) Read(b []byte) (int, error) {
	n, err := c.ReadCloser.Read(b)
	c.n += int64(n)
	c.pack.read += int64(n)
	l := c.pack.limits
	switch {
	case c.n > l.Part:
		return 0, expands("its part %s is more than %d MB", c.name, l.Part>>20)
	case c.pack.read > l.Total:
		return 0, expands("its parts are more than %d MB together", l.Total>>20)
	case c.n > ratioFrom && c.n > l.Ratio*max(1, c.packed):
		return 0, expands("its part %s is more than %d times as large as it is packed", c.name, l.Ratio)
	case err != nil && !errors.Is(err, io.EOF):
		return 0, fmt.Errorf("%w: its part %s cannot be expanded (%v); save it again with Word", unread.ErrDamaged, c.name, err)
	}
	return n, err
}

func expands(format string, args ...any) error {
	return fmt.Errorf("%w: it expands beyond the limit: %s; submit the text alone", unread.ErrTooLarge, fmt.Sprintf(format, args...))
}
