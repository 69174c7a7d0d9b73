package ingest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"holdfast/pkg/ingest/docx"
	"holdfast/pkg/ingest/pdf"
	"holdfast/pkg/pipeline"
)

// ReadTimeout is the longest that reading one document may take. Real ones take less than a second; a parser that does
// not come back is ended then.
const ReadTimeout = 90 * time.Second

// Config is what a reader needs.
type Config struct {
	Clock   pipeline.Clock
	Cache   string        // folder for the compiled reader of PDF; empty: it is compiled anew for every document
	Timeout time.Duration // 0: ReadTimeout
}

// Reader reads documents of every format.
type Reader struct{ cfg Config }

// New is a reader.
func New(cfg Config) *Reader {
	if cfg.Timeout == 0 {
		cfg.Timeout = ReadTimeout
	}
	return &Reader{cfg: cfg}
}

// Read is the text of a document, whatever its name ends in, with the map back. An error is permanent, unless ctx ended
// (its cause is wrapped then) or reading took too long (pipeline.ErrTimedOut). name is for the error.
func (r *Reader) Read(ctx context.Context, name string, source []byte) (pipeline.Document, error) {
	d, err := r.read(ctx, source)
	if errors.Is(err, pipeline.ErrTimedOut) {
		return pipeline.Document{}, fmt.Errorf("%s: reading it took longer than %v and was stopped; print it to a new PDF, or save it as plain text, and submit that: %w", name, r.cfg.Timeout, err)
	}
	if err != nil {
		return pipeline.Document{}, fmt.Errorf("%s: %w", name, err)
	}
	d.Origin.Document = hash(d.Text)
	return d, nil
}

func hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

func (r *Reader) read(ctx context.Context, source []byte) (d pipeline.Document, err error) {
	if len(source) > Limit {
		return d, fmt.Errorf("%w: it has %d bytes, the limit is %d (%d MB); split it into several documents", ErrTooLarge, len(source), Limit, Limit>>20)
	}
	switch detect(source) {
	case formatPDF:
		d, err = pdf.Read(ctx, source, r.pdfConfig())
	case formatZIP:
		ctx, stop := r.limit(ctx)
		defer stop()
		d, err = docx.Read(ctx, source, docx.DefaultLimits)
	default:
		d.Origin = pipeline.Origin{Version: pipeline.OriginVersion, Format: "text"}
		d.Text, err = text(source, TextLimit)
		return d, err
	}
	if err != nil {
		return pipeline.Document{}, err
	}
	return checked(d)
}

// limit ends ctx when the document has had its time.
func (r *Reader) limit(ctx context.Context) (context.Context, context.CancelFunc) {
	return r.cfg.Clock.WithTimeout(ctx, r.cfg.Timeout, pipeline.ErrTimedOut)
}

func (r *Reader) pdfConfig() pdf.Config {
	cfg := pdf.DefaultConfig
	cfg.Cache, cfg.Limit = r.cfg.Cache, r.limit
	return cfg
}

// checked is the document if no prompt and no report would stumble over its text.
func checked(d pipeline.Document) (pipeline.Document, error) {
	if err := checkCharacters(d.Text); err != nil {
		return pipeline.Document{}, err
	}
	if !hasText(d.Text) {
		return pipeline.Document{}, fmt.Errorf("%w: the document is empty, or holds nothing but white space; check that it is the right file", ErrNoText)
	}
	return d, nil
}
