// Package pdf reads the text of a PDF, page by page, with PDFium in a WebAssembly sandbox: it sees no file and no
// network, its memory has a limit, and it is interrupted when the context ends, even in the middle of a loop.
//
// It may decide: which pages hold no text that can be read.
// It may not: guess letters, try passwords, or keep anything between two documents but the compiled reader.
package pdf

import (
	"context"
	"errors"
	"fmt"

	pdfium "github.com/klippa-app/go-pdfium/errors"

	"holdfast/pkg/ingest/unread"
	"holdfast/pkg/pipeline"
)

// Config says where the compiled reader is kept and what a document may cost.
type Config struct {
	Cache  string // folder for the compiled reader; empty: it is compiled anew for every document, for seconds
	Pages  int    // pages of a document
	Memory int    // bytes of the sandbox
	Text   int    // bytes of text
	// Limit ends a context when a document has had its time. Compiling the reader does not count. nil: no limit.
	Limit func(ctx context.Context) (context.Context, context.CancelFunc)
}

// DefaultConfig is far above what any contract needs.
var DefaultConfig = Config{Pages: 3000, Memory: 384 << 20, Text: 32 << 20}

// Read is the text of a PDF. If ctx ends first, its cause is returned.
func Read(ctx context.Context, source []byte, cfg Config) (d pipeline.Document, err error) {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	defer func() {
		if recover() != nil { // of the sandbox's own code: whatever it was, it is this file that does it
			d, err = pipeline.Document{}, fmt.Errorf("%w: the reader of PDF failed on it; print it to a new PDF and submit that", unread.ErrDamaged)
		}
		if err != nil && ctx.Err() != nil {
			d, err = pipeline.Document{}, fmt.Errorf("read the PDF: %w", context.Cause(ctx))
		}
	}()
	e, err := start(ctx, cfg)
	if err != nil {
		return d, err
	}
	defer e.close()
	if cfg.Limit != nil {
		limited, free := cfg.Limit(ctx)
		defer free()
		defer context.AfterFunc(limited, func() { stop(context.Cause(limited)) })() // the engine lives by the context that it was started with
	}
	if err := e.open(source); err != nil {
		return d, err
	}
	return e.document(ctx, cfg)
}

// document reads page after page.
func (e *engine) document(ctx context.Context, cfg Config) (pipeline.Document, error) {
	count, err := e.pages()
	if err != nil {
		return pipeline.Document{}, damaged(err)
	}
	if count > cfg.Pages {
		return pipeline.Document{}, fmt.Errorf("%w: it has %d pages, the limit is %d; split it into several documents", unread.ErrTooLarge, count, cfg.Pages)
	}
	c := collection{cfg: cfg}
	for n := 1; n <= count; n++ {
		p, err := e.page(n)
		if err != nil {
			return pipeline.Document{}, fmt.Errorf("page %d: %w", n, damaged(err))
		}
		if err := c.add(n, p); err != nil {
			return pipeline.Document{}, err
		}
	}
	c.damaged = e.damagedPages(ctx, count)
	if ctx.Err() != nil {
		return pipeline.Document{}, context.Cause(ctx)
	}
	d, err := c.document(count)
	if err == nil && e.restricted() {
		d.Origin.Notes = append(d.Origin.Notes, "Its owner restricted what may be done with it (no password is needed to read it).")
	}
	return d, err
}

// damaged says what an error of the reader means for the person who submitted the file.
func damaged(err error) error {
	switch {
	case errors.Is(err, pdfium.ErrPassword):
		return fmt.Errorf("%w: it opens only with a password; save a copy without one and submit that", unread.ErrEncrypted)
	case errors.Is(err, pdfium.ErrSecurity):
		return fmt.Errorf("%w: it is protected in a way that is not known here; save a copy without protection and submit that", unread.ErrEncrypted)
	case errors.Is(err, pdfium.ErrFormat), errors.Is(err, pdfium.ErrFile), errors.Is(err, pdfium.ErrPage):
		return fmt.Errorf("%w: it begins like a PDF and cannot be read to its end, so it may have been cut; get the file again, or print it to a new PDF", unread.ErrDamaged)
	}
	return fmt.Errorf("%w: the reader of PDF failed on it, or ran out of its memory; print it to a new PDF and submit that", unread.ErrDamaged)
}
