package docx

import (
	"context"
	"fmt"
	"path"
	"strings"

	"holdfast/pkg/ingest/unread"
)

// relations are what a part refers to within the package.
type relations struct {
	byID   map[string]string
	byType map[string]string // by the last word of the type, which is the same in both variants of the standard
}

func (r relations) one(kind string) string { return r.byType[kind] }

// main finds the part with the document, and what it refers to.
func (p *pack) main(ctx context.Context) (part string, rels relations, err error) {
	if !p.has("_rels/.rels") || !p.has("[content_types].xml") {
		return "", relations{}, p.notWord()
	}
	top, err := p.relations(ctx, "_rels/.rels", "")
	if err != nil {
		return "", relations{}, err
	}
	part = top.one("officeDocument")
	if !p.has(part) {
		return "", relations{}, p.notWord()
	}
	if !strings.HasPrefix(partName(part), "word/") && (strings.HasPrefix(partName(part), "xl/") || strings.HasPrefix(partName(part), "ppt/")) {
		return "", relations{}, p.notWord()
	}
	name := path.Join(path.Dir(part), "_rels", path.Base(part)+".rels")
	if !p.has(name) {
		return part, relations{}, nil
	}
	rels, err = p.relations(ctx, name, path.Dir(part))
	return part, rels, err
}

func (p *pack) relations(ctx context.Context, name, base string) (relations, error) {
	all := relations{byID: map[string]string{}, byType: map[string]string{}}
	err := p.inPart(ctx, name, func(s *stream, _ element) error {
		return s.each(func(e element) error {
			target, kind := e.attr("Target"), path.Base(e.attr("Type"))
			if e.attr("TargetMode") != "External" && target != "" {
				if !strings.HasPrefix(target, "/") {
					target = path.Join(base, target)
				}
				target = strings.TrimPrefix(target, "/")
				all.byID[e.attr("Id")] = target
				if all.byType[kind] == "" {
					all.byType[kind] = target
				}
			}
			return s.skip()
		}, nil)
	})
	return all, err
}

// notWord says what a ZIP file is that is no Word document.
func (p *pack) notWord() error {
	what, do := "a ZIP file that holds no Word document", "take the document out of it and submit that"
	switch {
	case p.holds("xl/"):
		what, do = "an Excel workbook", "save it as text or PDF and submit that"
	case p.holds("ppt/"):
		what, do = "a PowerPoint presentation", "save it as PDF and submit that"
	case p.has("content.xml") && p.has("mimetype"):
		what, do = "an OpenDocument file", "save it as DOCX or PDF and submit that"
	case p.has("index/document.iwa"):
		what, do = "an Apple Pages document", "export it as DOCX or PDF and submit that"
	}
	return fmt.Errorf("%w: it is %s; DOCX, PDF and plain text are read; %s", unread.ErrFormat, what, do)
}
