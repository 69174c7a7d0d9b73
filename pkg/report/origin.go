package report

import "holdfast/pkg/pipeline"

// source is where a finding stood in what was submitted: "page 12". Empty if nobody knows: the map back is optional,
// and one of another text says nothing about this one.
func (d Data) source(f pipeline.Finding) string {
	if d.Origin.Document != d.Result.Manifest.Document || !placed(d.Text, f) {
		return ""
	}
	return d.Origin.Where(f.Start)
}

// where says where a finding stands, for people: in the text, and in the source if that is known.
func (d Data) where(f pipeline.Finding) string {
	if source := d.source(f); source != "" {
		return place(f) + ", " + source
	}
	return place(f)
}
