package offline

import (
	"bytes"
	"strings"
	"testing"
)

func TestShippedWeights(t *testing.T) {
	c, err := ReadClassifier(packedWeights)
	if err != nil {
		t.Fatal(err)
	}
	t.Run("they are small", func(t *testing.T) {
		if got := len(packedWeights); got > 1<<20 {
			t.Errorf("%d bytes, want at most 1 MB", got)
		}
	})
	t.Run("they know every kind that a check asks about", func(t *testing.T) {
		d := definition(t, "contract-review", "full")
		for k, clause := range Clauses() {
			if c.kinds[k].Name != clause.Kind || c.kinds[k].Find <= 0 {
				t.Errorf("kind %d: got %+v, want %s", k, c.kinds[k], clause.Kind)
			}
			if _, _, ok := d.Find("check." + clause.Check); !ok {
				t.Errorf("%s belongs to %s, which is no check", clause.Kind, clause.Check)
			}
		}
	})
	t.Run("they tell clauses apart", func(t *testing.T) {
		for kind, sentence := range map[string]string{
			"Governing Law":    "This Agreement shall be governed by and construed in accordance with the laws of the State of New York.",
			"Anti-Assignment":  "Neither party may assign this Agreement without the prior written consent of the other party.",
			"Cap On Liability": "In no event shall either party be liable for any indirect, incidental or consequential damages, and the total liability of either party shall not exceed the fees paid.",
			"Audit Rights":     "Licensor shall have the right to audit the books and records of Licensee upon reasonable notice.",
			"License Grant":    "Licensor hereby grants to Licensee a non-exclusive licence to use the Software.",
			"Insurance":        "Contractor shall maintain commercial general liability insurance with limits of one million dollars.",
			"Renewal Term":     "This Agreement shall automatically renew for successive one (1) year terms.",
		} {
			chances := newText(sentence).chances()[0]
			best := 0
			for k := range chances {
				if chances[k] > chances[best] {
					best = k
				}
			}
			if got := clauses[best].kind; got != kind || chances[best] < c.kinds[best].Find {
				t.Errorf("%q reads like %s (%.2f), want %s", sentence, got, chances[best], kind)
			}
		}
	})
}

func TestPackedWeightsReadBack(t *testing.T) {
	kinds, weights := make([]Kind, len(clauses)), make([][]int8, len(clauses))
	for k, c := range clauses {
		kinds[k] = Kind{Name: c.kind, Bias: -1, Scale: 0.5, Find: 0.25, Keep: 0.125}
		weights[k] = make([]int8, 1<<FeatureBits)
		weights[k][k], weights[k][len(weights[k])-1] = int8(k+1), -3
	}
	packed, err := PackClassifier(kinds, weights)
	if err != nil {
		t.Fatal(err)
	}
	c, err := ReadClassifier(packed)
	if err != nil {
		t.Fatal(err)
	}
	for k := range kinds {
		last := c.weights[(1<<FeatureBits-1)*len(kinds)+k]
		if c.kinds[k] != kinds[k] || c.weights[k*len(kinds)+k] != int8(k+1) || last != -3 {
			t.Errorf("kind %d: got %+v, %d, %d", k, c.kinds[k], c.weights[k*len(kinds)+k], last)
		}
	}
	again, err := PackClassifier(kinds, weights)
	if err != nil || !bytes.Equal(packed, again) {
		t.Errorf("the same weights are not the same file: %v", err)
	}
	t.Run("a file that is cut short or of other kinds is refused", func(t *testing.T) {
		kinds[0].Name = "Something Else"
		other, err := PackClassifier(kinds, weights)
		if err != nil {
			t.Fatal(err)
		}
		for _, bad := range [][]byte{nil, packed[:len(packed)/2], other} {
			if _, err := ReadClassifier(bad); err == nil || !strings.Contains(err.Error(), "weights") {
				t.Errorf("%d bytes: got %v, want an error about the weights", len(bad), err)
			}
		}
	})
}

func TestSentencesForTraining(t *testing.T) {
	text := "ASSIGNMENT\n\nNeither  party may assign this Agreement\nwithout consent. Notices are sent by post."
	all := Sentences(text)
	if len(all) != 2 {
		t.Fatalf("got %d sentences, want 2", len(all))
	}
	t.Run("their places are those of the text that was given", func(t *testing.T) {
		if got, want := text[all[0].Start:all[0].End], "Neither  party may assign this Agreement\nwithout consent."; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	})
	t.Run("rules that match are named by their check", func(t *testing.T) {
		if got := append(all[0].Checks, all[0].Certain...); len(got) != 1 || got[0] != "assignment-control.consent" {
			t.Errorf("got %v, want assignment-control.consent", got)
		}
	})
	t.Run("the heading counts", func(t *testing.T) {
		without := Sentences(strings.TrimPrefix(text, "ASSIGNMENT\n\n"))
		if len(without[0].Features) >= len(all[0].Features) {
			t.Errorf("got %d features with a heading and %d without", len(all[0].Features), len(without[0].Features))
		}
	})
}
