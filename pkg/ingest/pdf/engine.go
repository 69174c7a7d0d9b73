package pdf

import (
	"context"
	"fmt"
	"io"
	"runtime"

	"github.com/klippa-app/go-pdfium"
	"github.com/klippa-app/go-pdfium/enums"
	"github.com/klippa-app/go-pdfium/references"
	"github.com/klippa-app/go-pdfium/requests"
	"github.com/klippa-app/go-pdfium/webassembly"
	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"
)

// engine is PDFium for one document: its memory never shrinks, so the next document gets a new one.
type engine struct {
	cache wazero.CompilationCache
	pool  pdfium.Pool
	lib   pdfium.Pdfium
	doc   references.FPDF_DOCUMENT
}

const wasmPage = 64 << 10

// start makes an engine that ends when ctx does.
func start(ctx context.Context, cfg Config) (e *engine, err error) {
	e = &engine{}
	defer func() {
		if err != nil {
			e.close()
			e, err = nil, fmt.Errorf("start the reader of PDF: %w", err)
		}
	}()
	settings := wazero.NewRuntimeConfig().
		WithCoreFeatures(api.CoreFeaturesV2 | experimental.CoreFeaturesExceptionHandling). // the module needs it
		WithMemoryLimitPages(uint32(cfg.Memory / wasmPage)).
		WithCloseOnContextDone(true) // this is what ends a loop within it
	if e.cache = openCache(cfg.Cache); e.cache != nil {
		settings = settings.WithCompilationCache(e.cache)
	}
	e.pool, err = webassembly.Init(webassembly.Config{
		Context: experimental.WithCompilationWorkers(ctx, runtime.GOMAXPROCS(0)), MaxIdle: 1, MaxTotal: 1, RuntimeConfig: settings,
		FSConfig: wazero.NewFSConfig(), // without it, it would see the whole file system
		Stdout:   io.Discard, Stderr: io.Discard,
	})
	if err != nil {
		return e, err
	}
	e.lib, err = e.pool.GetInstanceWithContext(ctx)
	return e, err
}

// openCache is the cache in that folder; nil without one, or if it cannot be used: then it takes longer, no more.
func openCache(folder string) wazero.CompilationCache {
	if folder == "" {
		return nil
	}
	cache, err := wazero.NewCompilationCacheWithDir(folder)
	if err != nil {
		return nil
	}
	return cache
}

func (e *engine) close() {
	if e.lib != nil {
		_ = e.lib.Close() // the pool below takes all with it
	}
	if e.pool != nil {
		_ = e.pool.Close()
	}
	if e.cache != nil {
		_ = e.cache.Close(context.Background())
	}
}

func (e *engine) open(source []byte) error {
	opened, err := e.lib.OpenDocument(&requests.OpenDocument{File: &source})
	if err != nil {
		return damaged(err)
	}
	e.doc = opened.Document
	return nil
}

func (e *engine) pages() (int, error) {
	r, err := e.lib.FPDF_GetPageCount(&requests.FPDF_GetPageCount{Document: e.doc})
	if err != nil {
		return 0, err
	}
	return r.PageCount, nil
}

// restricted says that the document is encrypted with a password that only its owner needs.
func (e *engine) restricted() bool {
	r, err := e.lib.FPDF_GetSecurityHandlerRevision(&requests.FPDF_GetSecurityHandlerRevision{Document: e.doc})
	return err == nil && r.SecurityHandlerRevision > 0
}

// page is what one page holds.
type page struct {
	text    string
	objects int     // anything that is drawn
	image   float64 // share of the page that its largest picture covers
}

// page reads the page n, from 1.
func (e *engine) page(n int) (p page, err error) {
	loaded, err := e.lib.FPDF_LoadPage(&requests.FPDF_LoadPage{Document: e.doc, Index: n - 1})
	if err != nil {
		return p, err
	}
	at := requests.Page{ByReference: &loaded.Page}
	defer func() { _, _ = e.lib.FPDF_ClosePage(&requests.FPDF_ClosePage{Page: loaded.Page}) }()
	if p.text, err = e.text(at); err != nil {
		return p, err
	}
	if letters(p.text) >= fewLetters {
		return p, nil
	}
	return p, e.drawn(at, &p)
}

func (e *engine) text(at requests.Page) (string, error) {
	loaded, err := e.lib.FPDFText_LoadPage(&requests.FPDFText_LoadPage{Page: at})
	if err != nil {
		return "", err
	}
	defer func() {
		_, _ = e.lib.FPDFText_ClosePage(&requests.FPDFText_ClosePage{TextPage: loaded.TextPage})
	}()
	count, err := e.lib.FPDFText_CountChars(&requests.FPDFText_CountChars{TextPage: loaded.TextPage})
	if err != nil || count.Count <= 0 {
		return "", err
	}
	got, err := e.lib.FPDFText_GetText(&requests.FPDFText_GetText{TextPage: loaded.TextPage, Count: count.Count})
	if err != nil {
		return "", err
	}
	return got.Text, nil
}

// maxObjects bounds how many objects of a page are looked at: a scan is one of the first.
const maxObjects = 200

// drawn looks at what is on a page that has hardly any text.
func (e *engine) drawn(at requests.Page, p *page) error {
	count, err := e.lib.FPDFPage_CountObjects(&requests.FPDFPage_CountObjects{Page: at})
	if err != nil {
		return err
	}
	size, err := e.size(at)
	if err != nil {
		return err
	}
	p.objects = count.Count
	for i := range min(count.Count, maxObjects) {
		object, err := e.lib.FPDFPage_GetObject(&requests.FPDFPage_GetObject{Page: at, Index: i})
		if err != nil {
			return err
		}
		kind, err := e.lib.FPDFPageObj_GetType(&requests.FPDFPageObj_GetType{PageObject: object.PageObject})
		if err != nil {
			return err
		}
		if kind.Type != enums.FPDF_PAGEOBJ_IMAGE || size <= 0 {
			continue
		}
		if box, err := e.lib.FPDFPageObj_GetBounds(&requests.FPDFPageObj_GetBounds{PageObject: object.PageObject}); err == nil {
			p.image = max(p.image, float64((box.Right-box.Left)*(box.Top-box.Bottom))/size)
		}
	}
	return nil
}

func (e *engine) size(at requests.Page) (float64, error) {
	width, err := e.lib.FPDF_GetPageWidth(&requests.FPDF_GetPageWidth{Page: at})
	if err != nil {
		return 0, err
	}
	height, err := e.lib.FPDF_GetPageHeight(&requests.FPDF_GetPageHeight{Page: at})
	if err != nil {
		return 0, err
	}
	return width.Width * height.Height, nil
}
