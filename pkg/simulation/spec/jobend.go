package spec

// reaper is reap.Reaper.step on the rows: closes those that nobody holds, unparks, expires.
func (x *jobSteps) reaper() {
	s, m := x.s, x.m
	noSplit := s.Split.Put && s.Split.over() && s.Split.Status != Done
	for c := -1; c < chunks; c++ {
		row := s.Split
		if c >= 0 {
			row = s.Work[c]
		}
		if !row.Put {
			continue
		}
		set := func(to Status, text string) {
			n := *s
			if c < 0 {
				n.Split.Status = to
			} else {
				n.Work[c].Status = to
			}
			step := x.step(n, byReaper, Says{Text: text, A: int8(c)})
			if to == Cancelled && s.Status == Running && s.Epoch > 0 && m.breaks(RedriveKeepsDeadline) {
				step.Bad = "P5 a redriven row is ended at once: its job's deadline was over before"
			}
		}
		free := row.Status == Pending || row.Status == Parked
		switch {
		case free && s.Status.Ended() && m.breaks(EndedJobsLeft):
		case free && (s.stops() || (noSplit && c >= 0)):
			set(Cancelled, "reaper or canceller closes row {a} (-1 is the split)")
		case row.Status == Parked && (s.Status == Running):
			set(Pending, "reaper unparks row {a}")
		}
	}
}

// opener is finalize.Opener.MaybeFinalize, by the reaper or whoever ended a task: it reads the job, then the rows.
func (x *jobSteps) opener() {
	s, o := x.s, x.s.Opener
	n := *s
	switch o.Part {
	case 0:
		if !s.Status.Ended() && x.m.needsOpener(s) {
			n.Opener = Opener{Part: 1, JobSeen: s.seen(), Over: s.Over && s.Status != Paused}
			x.step(n, byOpener, Says{Text: "opener reads the job: epoch {a}", A: s.Epoch})
		}
	case 1:
		x.opens(o)
	case 2:
		x.closes(o)
	case 3:
		n.Opener = Opener{}
		switch {
		case s.Epoch != o.Epoch: // the row of an epoch that is over: its finalizer finds that out
		case !s.Final.Put:
			n.Final, n.FinalAtt, n.FinalOwner, n.Late = JobRow{Put: true}, 0, 0, false
		}
		x.step(n, byOpener, Says{Text: "opener puts the finalize of epoch {a}", A: o.Epoch})
	}
}

// needsOpener says that a call would do something; others are reads.
func (m *Job) needsOpener(s *JobWorld) bool {
	return s.Split.over() || !s.Split.Put || s.Final.Put || s.Late || (m.breaks(ArrivalsCounted) && s.Arrivals > chunks)
}

// opens is Opener.maybe: what the rows say.
func (x *jobSteps) opens(o Opener) {
	s, m := x.s, x.m
	n := *s
	absent := s.Manifest == Listed && (!s.Work[0].Put || !s.Work[1].Put)
	splitLost := !s.Split.Put
	manifestLost := s.Split.Put && s.Split.Status == Done && s.Manifest == NoManifest
	final := s.Final.Put && s.Epoch == o.Epoch
	says := Says{Text: "opener finds nothing to do"}
	n.Opener = Opener{}
	switch {
	case final && (s.Final.Status == Abandoned || s.Final.Status == Cancelled):
		bad := ""
		if s.Final.Status == Cancelled {
			bad = "P9 a cancelled job is failed: its finalize was cancelled with it"
		}
		x.fails(o, "its finalize was given up").Bad = bad
		return
	case final && s.Late && o.Over:
		x.fails(o, "its finalize is not through long after the deadline")
		return
	case splitLost || manifestLost:
		x.fails(o, "what it needs is gone")
		return
	case m.breaks(FailedAtOnce) && s.Split.Status == Abandoned:
		x.fails(o, "its split was given up")
		return
	case m.breaks(ArrivalsCounted):
		if s.Arrivals > chunks && !final {
			n.Opener = Opener{Part: 3, JobSeen: JobSeen{Epoch: o.Epoch}}
			says.Text = "opener counts {a} arrivals"
			says.A = s.Arrivals
		}
	case s.allEnded():
		if !final {
			n.Opener = o
			n.Opener.Part = 3
			says.Text = "opener finds that all have ended"
		}
	case s.Split.over() && s.Split.Status != Done && !m.breaks(SplitNotClosed):
		n.Opener = o
		n.Opener.Part = 2
		says.Text = "opener finds a split that is {row}: closes it"
		says.Row = s.Split.Status
	case s.Split.over() && s.Split.Status == Done && absent && (o.Status == Running || o.Status == Cancelling || o.Over) && !m.breaks(MissingRowsLeft):
		n.Opener = o
		n.Opener.Part = 2
		says.Text = "opener finds that rows are missing"
	case !final && s.Late && o.Over:
		n.Opener = o
		n.Opener.Part = 3
		says.Text = "opener finds that it is long after the deadline"
	}
	x.step(n, byOpener, says)
}

// closes is Opener.closeSplit and closeLost: the manifest if there is none, then the missing rows as cancelled. The
// next call looks again.
func (x *jobSteps) closes(o Opener) {
	s := x.s
	n := *s
	n.Opener = Opener{}
	if s.Manifest == NoManifest || (x.m.breaks(ManifestReplaced) && s.Manifest == Listed && s.Split.Status != Done) {
		n.Manifest = Closed
		x.step(n, byOpener, Says{Text: "opener stores a manifest of no chunks"})
		return
	}
	for c, row := range s.Work {
		if s.Manifest == Listed && !row.Put {
			n.Work[c] = JobRow{Put: true, Status: Cancelled}
			n.Opener = o
			x.step(n, byOpener, Says{Text: "opener puts the missing chunk {a} as cancelled", A: int8(c)})
			return
		}
	}
	x.step(n, byOpener, Says{Text: "opener has closed what there was to close"})
}

// fails is Opener.fail: on condition that the job is still as it was read.
func (x *jobSteps) fails(o Opener, why string) *Step[JobWorld] {
	n := *x.s
	n.Opener = Opener{}
	if x.m.same(x.s, o.JobSeen) && !x.s.Status.Ended() {
		n.Status, n.Named = JobFailed, false
		return x.step(n, byOpener, Says{Text: "opener fails the job: " + why})
	}
	return x.step(n, byOpener, Says{Text: "opener's write is refused: the job moved"})
}

// claimFinal is a claim of the epoch's finalize.
func (x *jobSteps) claimFinal() {
	s := x.s
	if !s.Final.Put || s.Final.Status != Pending {
		return
	}
	for i := range s.Finalizers {
		if s.Finalizers[i].Part != 0 {
			continue
		}
		n := *s
		n.Final.Status, n.FinalOwner = Claimed, int8(i)+1
		n.FinalAtt++
		n.Finalizers[i] = Finalizer{Part: 1, Epoch: s.Epoch}
		x.step(n, byFinal+Actor(i), Says{Text: "finalizer {who} claims the finalize of epoch {a}", Who: int8(i), A: s.Epoch})
		break
	}
	if x.m.breaks(FinalizeCancelled) && s.stops() {
		n := *s
		n.Final.Status = Cancelled
		x.step(n, byReaper, Says{Text: "reaper closes the finalize with the other rows"})
	}
}

// ends ends a finalizer's claim, if it still has it.
func (x *jobSteps) ends(n *JobWorld, i int, to Status) {
	f := n.Finalizers[i]
	if n.Final.Put && n.Final.Status == Claimed && n.FinalOwner == int8(i)+1 && f.Epoch == n.Epoch {
		n.Final.Status, n.FinalOwner = to, 0
		if to == Pending {
			n.FinalAtt = max(0, n.FinalAtt-1)
		}
	}
	n.Finalizers[i] = Finalizer{}
}

// finalizer is finalize.Finalizer.Handle, step by step.
func (x *jobSteps) finalizer(i int) {
	s, m, who := x.s, x.m, byFinal+Actor(i)
	f := s.Finalizers[i]
	if f.Part == 0 {
		return
	}
	n := *s
	says := Says{Who: int8(i), A: f.Epoch}
	switch {
	case f.Part == 1 && (s.Status.Ended() || s.Epoch != f.Epoch):
		x.ends(&n, i, Done)
		says.Text = "finalizer {who} finds the job ended, or redriven"
	case f.Part == 1:
		n.Finalizers[i].Part, n.Finalizers[i].Job = 2, s.seen()
		says.Text = "finalizer {who} reads the job"
	case f.Part <= 4:
		row := s.Split
		if f.Part > 2 {
			row = s.Work[f.Part-3]
		}
		n.Finalizers[i].Seen[f.Part-2] = row.status()
		n.Finalizers[i].Part++
		says.Text, says.B, says.C = "finalizer {who} reads row {b}: status {c}", f.Part-3, int8(row.status())
	case f.Part == 5 && !m.breaks(ArrivalsCounted) && !f.allEnded(s.Manifest):
		x.ends(&n, i, Pending)
		says.Text = "finalizer {who} reads the manifest, and not all have ended: waits"
	case f.Part == 5:
		for r := range f.Seen {
			if !f.Seen[r].Ended() {
				n.Finalizers[i].Seen[r] = Cancelled // not asked
			}
		}
		n.Shared = n.Finalizers[i].Seen
		n.Finalizers[i].Part = 6
		says.Text = "finalizer {who} stores the final states of epoch {a}"
	case f.Part == 6:
		x.decides(&n, i, f, &says)
	default:
		x.ends(&n, i, Done)
		says.Text = "finalizer {who} ends"
	}
	x.step(n, who, says)
	own := s.Final.Put && s.Final.Status == Claimed && s.FinalOwner == int8(i)+1 && f.Epoch == s.Epoch
	if own && s.Left.Crashes > 0 {
		n := *s
		n.Left.Crashes--
		n.FinalOwner, n.Final.Status = 0, Pending
		if s.FinalAtt >= 2 {
			n.Final.Status = Abandoned
		}
		x.step(n, Fault, Says{Text: "the claim of finalizer {who} expires, and it goes on: the finalize is {row}", Who: int8(i), Row: n.Final.Status})
		n.Finalizers[i] = Finalizer{}
		x.step(n, Fault, Says{Text: "finalizer {who} is killed: the finalize is {row}", Who: int8(i), Row: n.Final.Status})
	}
}

// allEnded is finalize.AllEnded of the rows that were read, and of the manifest as it is read after them.
func (f Finalizer) allEnded(manifest Manifest) bool {
	ended := f.Seen[0].Ended() && manifest != NoManifest
	for _, row := range f.Seen[1:] {
		ended = ended && (manifest == Closed || row.Ended())
	}
	return ended
}

// decides is Finalizer.end: the job's row, on condition that it is as it was read.
func (x *jobSteps) decides(n *JobWorld, i int, f Finalizer, says *Says) {
	s := x.s
	stands := !s.Status.Ended() && x.m.same(s, f.Job)
	if !stands && !x.m.breaks(EndUnconditional) {
		n.Finalizers[i] = Finalizer{Part: 1, Epoch: f.Epoch}
		says.Text = "finalizer {who}'s write of the job is refused: it looks again"
		return
	}
	status := Completed
	for _, row := range f.Seen {
		if row != Done {
			status = Partial
		}
	}
	switch {
	case f.Job.Status == Cancelling:
		status = JobCancelled
	case f.Seen[0] != Done:
		status = JobFailed
	}
	n.Status, n.Result, n.Named = status, f.Seen, true
	n.Finalizers[i].Part = 7
	says.Text = "finalizer {who} ends the job: " + status.String()
}
