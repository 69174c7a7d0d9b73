package spec

// Apply is the store: one compare-and-swap of one row. It says whether the condition held. Each case is the method of
// the same name of memory.Store (and of dynamostore and sqlitestore, which are held to the same).
func (m *Task) Apply(r *Row, w Write) bool {
	if r.Gone && !(w.Op == OpClaim && m.breaks(GhostRow)) { // memory.Store.change: the row exists
		return false
	}
	if !m.allows(r, w) {
		return false
	}
	switch w.Op {
	case OpClaim:
		r.Gone = false
		r.Status, r.Claim, r.Left, r.Due = Claimed, w.Claim, w.Left, false
		r.Gen = w.Gen + 1
		r.Rings, r.New = 0, false
		if !m.breaks(CountedAfter) {
			r.Att++
		}
	case OpRenew:
		r.Left, r.New, r.Allowed = w.Left, w.New, w.Allowed
	case OpCheckpoint:
		r.Acc, r.Body[w.Acc-1] = w.Acc, w.Gen
		r.Att, r.Los, r.Allowed = m.first(), 0, w.Allowed
	case OpEnd:
		m.become(r, w)
		r.Allowed, r.EndedBy = w.Allowed, w.Claim
	case OpExpire:
		m.become(r, w)
		r.EndedBy = ByExpiry
	case OpRing:
		r.Rings, r.Due = w.Count, false
	case OpPostpone:
		r.Due = false
	case OpUnpark:
		r.Status, r.Ready, r.Due, r.Rings = Pending, true, true, 0
	case OpClose:
		r.Status, r.Due = w.V.Status, false
	case OpBuried:
		r.Buried = true
	case OpRedrive:
		m.redriven(r, w)
	case OpVanish:
		*r = Row{Gone: true}
	}
	return true
}

// first is how many attempts count when a stage is accepted: the running one.
func (m *Task) first() int8 {
	if m.breaks(CountedAfter) {
		return 0
	}
	return 1
}

// allows is the condition of a write.
func (m *Task) allows(r *Row, w Write) bool {
	switch w.Op {
	case OpClaim:
		return m.claimable(r) && (r.Ready || r.Gone) &&
			r.Gen == w.Gen &&
			(r.Att < w.Cap || m.breaks(NoCap)) &&
			(r.Los < lossesForgiven || w.Alone)
	case OpRenew:
		return m.mine(r, w, RenewByStatus) &&
			(r.Left < w.Left || m.breaks(RenewShortens)) &&
			(r.Allowed <= w.Allowed || m.breaks(AllowedFalls)) &&
			w.Allowed <= r.MaxTries
	case OpCheckpoint:
		return m.mine(r, w, CheckpointUnfenced) &&
			(r.Acc == w.Acc-1 || m.breaks(AnyStage)) &&
			(r.Allowed <= w.Allowed || m.breaks(AllowedFalls)) &&
			w.Allowed <= r.MaxTries
	case OpEnd:
		return m.mine(r, w, EndUnfenced) &&
			(r.Acc == w.Acc || m.breaks(EndAnyStage)) &&
			w.Allowed <= r.Allowed
	case OpExpire:
		return r.Gen == w.Gen &&
			(r.Acc == w.Acc || m.breaks(ExpireAnyStage)) &&
			m.expirable(r, w.Skew-w.Age)
	case OpRing:
		return seenSo(r, w) && r.Status == Pending
	case OpPostpone:
		return seenSo(r, w)
	case OpUnpark:
		return seenSo(r, w) && r.Status == Parked
	case OpClose:
		if m.breaks(CloseAnyGeneration) {
			return r.Status == w.Status
		}
		return seenSo(r, w) && (r.Status == Pending || r.Status == Parked || m.breaks(ExhaustClaimed))
	case OpBuried:
		return r.Status == Abandoned && (r.Gen == w.Gen || m.breaks(BuryAnyGeneration))
	case OpRedrive:
		return r.Status == w.Status && r.Gen == w.Gen && r.Status.Ended()
	}
	return true
}

func (m *Task) claimable(r *Row) bool {
	return r.Status == Pending || (m.breaks(ClaimTakesOver) && m.expirable(r, 0))
}

// mine is memory.mine: the fence.
func (m *Task) mine(r *Row, w Write, without Break) bool {
	return r.Status == Claimed && (m.breaks(without) || (r.Gen == w.Gen && r.Claim == w.Claim))
}

// seenSo is memory.seenSo: nobody has claimed or rung the row, or moved it on, since it was read.
func seenSo(r *Row, w Write) bool {
	return r.Status == w.Status && r.Gen == w.Gen && r.Rings == w.Rings && w.Same
}

// expirable is pipeline.Task.Expirable, on a clock that is wrong by skew.
func (m *Task) expirable(r *Row, skew int8) bool {
	margin := m.MaxSkew
	if m.breaks(ExpireAtOnce) {
		margin = 0
	}
	return r.Status == Claimed && r.Left < skew-margin
}

// become is memory.become, and pipeline.Verdict.DueAt.
func (m *Task) become(r *Row, w Write) {
	v := w.V
	r.Status, r.Att, r.Def, r.Los = v.Status, v.Att, v.Def, v.Los
	r.Ready = !v.Wait
	r.Due = v.Status == Pending && !v.Counted && !v.Wait
}

// redriven is memory.reopen.
func (m *Task) redriven(r *Row, w Write) {
	r.Status, r.Att, r.Def, r.Los, r.Rings = Pending, 0, 0, 0, 0
	r.Gen++
	r.Acc = w.Acc
	for n := w.Acc; n < MaxStages; n++ {
		r.Body[n] = 0
	}
	r.MaxTries += m.TryCap
	r.Ready, r.Due, r.Buried = true, true, false
}
