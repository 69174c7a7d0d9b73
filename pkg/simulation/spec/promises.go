package spec

// Promises are what every search checks, for people.
func Promises() []string {
	return []string{
		"P1  a task is done only with every stage; a job has ended only with every row, and its result says what the rows say",
		"P2  one accepted result of a stage; a generation never goes back, nor does an accepted stage",
		"P3  tries sent <= tries allowed <= the cap; never do two workers trust a claim on one task, nor is one taken away that is trusted",
		"P4  an attempt ends with the record of whoever ended it; a dead letter marked as sent was sent",
		"P5  what has ended stays ended but for a redrive, a redrive is not undone, a deleted row does not come back",
		"P6  given up only after as many counted attempts as are allowed; one's own write, its answer lost, is no loss",
		"P7  attempts, deferrals and claims are bounded by the policy's numbers, whatever happens; a third loss in a row counts",
		"P8  finished work is neither abandoned nor cancelled",
		"P9  what a person asked for is not taken back: a cancel that was accepted ends in cancelled, a pause with a resume of its own",
		"P10 no row and no job is stuck: every fair run ends with all rows ended, dead letters sent and the queue empty",
	}
}
