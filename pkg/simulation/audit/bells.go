package audit

import "holdfast/pkg/pipeline"

// bell is whose bell for which row.
type bell struct {
	by  string
	ref pipeline.Ref
}

// mayRing: who put, rang, unparked or redrove a row may send one bell for it, whatever else it knows.
func (a *Auditor) mayRing(w Write) {
	switch w.Op {
	case Put, Ring, Unpark, Redrive:
		a.bells[bell{w.By, w.Ref}]++
	}
}

// rings: no bell is sent by who has not written that it is sent. The row says so first: otherwise it is rung again.
func (a *Auditor) rings(by string, ref pipeline.Ref) {
	a.bells[bell{by, ref}]--
	a.check("P7", ref.String(), a.bells[bell{by, ref}] >= 0 || a.restored, "%s sends a bell, and has not written that it does", by)
}
