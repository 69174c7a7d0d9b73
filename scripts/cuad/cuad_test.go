package cuad

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// shipped are the contracts of CUAD that serve as test documents.
var shipped = []string{
	"AURASYSTEMSINC_06_16_2010-EX-10.25-STRATEGIC ALLIANCE AGREEMENT",
	"INKTOMICORP_06_08_1998-EX-10.14-SOFTWARE HOSTING AGREEMENT",
	"IntegrityFunds_20200121_485BPOS_EX-99.E UNDR CONTR_11948727_EX-99.E UNDR CONTR_Service Agreement",
	"LIMEENERGYCO_09_09_1999-EX-10-DISTRIBUTOR AGREEMENT",
	"OASYSMOBILE,INC_07_05_2001-EX-10.17-OUTSOURCING AGREEMENT",
	"ReynoldsConsumerProductsInc_20200121_S-1A_EX-10.22_11948918_EX-10.22_Service Agreement",
	"SFGFINANCIALCORP_05_12_2009-EX-10.1-SOFTWARE LICENSE AND MAINTENANCE AGREEMENT",
	"WORLDWIDESTRATEGIESINC_11_02_2005-EX-10-RESELLER AGREEMENT",
	"SteelVaultCorp_20081224_10-K_EX-10.16_3074935_EX-10.16_Affiliate Agreement",
}

func TestHoldout(t *testing.T) {
	held, trained := Holdout(), Trained()
	t.Run("it holds about a hundred contracts, the test documents among them", func(t *testing.T) {
		if len(held) < 90 || len(held) > 110 {
			t.Errorf("got %d contracts", len(held))
		}
		for _, name := range shipped {
			if !slices.Contains(held, name) {
				t.Errorf("%s is not held out", name)
			}
		}
	})
	t.Run("no filer is on both sides", func(t *testing.T) {
		groups := map[string]bool{}
		for _, name := range trained {
			groups[Contract{Name: name}.Group()] = true
		}
		for _, name := range held {
			if groups[Contract{Name: name}.Group()] {
				t.Errorf("%s is held out, and its filer was trained on", name)
			}
		}
		if len(trained) < 200 {
			t.Errorf("got %d names of what was trained on", len(trained))
		}
	})
}

func TestRead(t *testing.T) {
	dir := t.TempDir()
	write := func(name, body string) {
		t.Helper()
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(body), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("txt/ACME,INC_2001-EX-10.txt", "1. Law. The laws of\n   Ohio\u2019s courts govern. 2. End.")
	write("txt/Other.txt", "Nothing.")
	write("labels.csv", "Filename,Governing Law,Governing Law-Answer\n"+
		`"ACME, INC_2001-EX-10.PDF","['The laws of Ohio\'s courts govern.', ""not in the text""]",Ohio`+"\n")
	corpus, err := Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(corpus.Contracts) != 1 || !slices.Equal(corpus.Unmatched, []string{"Other"}) {
		t.Fatalf("got %d contracts, unmatched %v", len(corpus.Contracts), corpus.Unmatched)
	}
	c := corpus.Contracts[0]
	spans := c.Clauses["Governing Law"]
	if len(spans) != 1 || c.Lost != 1 {
		t.Fatalf("got %v, %d lost, want one place and one lost", spans, c.Lost)
	}
	if got, want := c.Text[spans[0].Start:spans[0].End], "The laws of\n   Ohio\u2019s courts govern"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if c.Group() != "acmeinc" {
		t.Errorf("got group %q", c.Group())
	}
	t.Run("a folder without texts says what is missing", func(t *testing.T) {
		if _, err := Read(t.TempDir()); err == nil {
			t.Error("got no error")
		}
	})
}

func TestListed(t *testing.T) {
	got := listed(`['it\'s', "two \"quoted\" words", 'a\nb', 'caf\xe9', '']`)
	if want := []string{"it's", `two "quoted" words`, "a\nb", "caf\u00e9"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
