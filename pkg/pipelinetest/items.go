package pipelinetest

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"holdfast/pkg/pipeline"
)

var itemPromises = []promise{
	{"an item is stored, replaced and read", itemsAreKept},
	{"an item is put once and the body that stands is returned", putOnce},
	{"an item over the limit is refused and one just under it is kept", itemLimits},
	{"items come by prefix, in order, in pages under the limit", itemPages},
	{"a reply is put once and the winner is returned", replyWinner},
	{"replies are read in batches, and what is missing is missing", repliesInBatches},
	{"findings are fed in order, once per task, stage and generation", findingsOnce},
	{"a blob is replaced whole", blobsAreKept},
	{"what a caller does to a body afterwards changes nothing stored", bodiesAreCopied},
}

func itemsAreKept(t *testing.T, h Harness) {
	b := newBench(t, h)
	_, err := h.Store.Item(b.ctx, b.job, "key")
	b.fails(err, pipeline.ErrNotFound)
	for _, body := range []string{"first", "", "\x00\xff second"} {
		b.must(h.Store.PutItem(b.ctx, b.job, "key", []byte(body)))
		got, err := h.Store.Item(b.ctx, b.job, "key")
		if err != nil || string(got) != body {
			t.Errorf("got %q, error %v; want %q", got, err, body)
		}
	}
	_, err = h.Store.Item(b.ctx, b.job+"-other", "key")
	b.fails(err, pipeline.ErrNotFound)
}

func putOnce(t *testing.T, h Harness) {
	b := newBench(t, h)
	loses(b, "PutItemOnce", func(s pipeline.Store) error {
		_, err := s.PutItemOnce(b.ctx, b.job, pipeline.ManifestKey, []byte("first"))
		return err
	})
	for _, body := range []string{"first", "second"} {
		stands, err := h.Store.PutItemOnce(b.ctx, b.job, pipeline.ManifestKey, []byte(body))
		if err != nil || string(stands) != "first" {
			t.Errorf("got %q, error %v; want the first", stands, err)
		}
	}
	got, err := h.Store.Item(b.ctx, b.job, pipeline.ManifestKey)
	if err != nil || string(got) != "first" {
		t.Errorf("got %q, error %v; want the first", got, err)
	}
}

func itemLimits(t *testing.T, h Harness) {
	b := newBench(t, h)
	over, under := make([]byte, pipeline.MaxItem+1), bytes.Repeat([]byte("x"), pipeline.MaxItem-1024)
	b.fails(h.Store.PutItem(b.ctx, b.job, "over", over), pipeline.ErrTooLarge)
	_, err := h.Store.PutItemOnce(b.ctx, b.job, "over", over)
	b.fails(err, pipeline.ErrTooLarge)
	_, err = h.Store.Item(b.ctx, b.job, "over")
	b.fails(err, pipeline.ErrNotFound)
	_, err = h.Store.PutReply(b.ctx, pipeline.Reply{Key: pipeline.ReplyKey(b.job), Text: string(over)})
	b.fails(err, pipeline.ErrTooLarge)
	b.fails(h.Store.PutFindings(b.ctx, pipeline.FindingGroup{Job: b.job, Findings: []pipeline.Finding{{Quote: string(over)}}}), pipeline.ErrTooLarge)
	b.must(h.Store.PutItem(b.ctx, b.job, "under", under))
	got, err := h.Store.Item(b.ctx, b.job, "under")
	if err != nil || !bytes.Equal(got, under) {
		t.Errorf("got %d bytes, error %v; want %d", len(got), err, len(under))
	}
}

func itemPages(t *testing.T, h Harness) {
	b := newBench(t, h)
	task := pipeline.WorkTask(1)
	var want []string
	for n := range 7 {
		key := pipeline.RecordKey(task, int64(7-n), "c")
		b.must(h.Store.PutItem(b.ctx, b.job, key, bytes.Repeat([]byte{byte(n)}, 300<<10)))
		want = append(want, key)
	}
	slices.Sort(want)
	for _, key := range []string{"task#work#0000", "task#work#00001#", pipeline.RecordsPrefix(pipeline.WorkTask(2)) + "x", "tasl"} {
		b.must(h.Store.PutItem(b.ctx, b.job, key, []byte("not under the prefix")))
	}
	var got []string
	cursor, pages := "", 0
	for {
		page, next, err := h.Store.Items(b.ctx, b.job, pipeline.RecordsPrefix(task), cursor)
		b.must(err)
		size := 0
		for _, item := range page {
			got = append(got, item.Key)
			size += len(item.Body)
			if len(item.Body) != 300<<10 {
				t.Errorf("%s has %d bytes, want %d", item.Key, len(item.Body), 300<<10)
			}
		}
		if size > pipeline.MaxPage {
			t.Errorf("a page has %d bytes, want at most %d", size, pipeline.MaxPage)
		}
		if pages++; next == "" {
			break
		}
		cursor = next
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if pages < 3 {
		t.Errorf("got %d pages, want at least 3", pages)
	}
	all, _, err := h.Store.Items(b.ctx, b.job, "tasl", "")
	if err != nil || len(all) != 1 {
		t.Errorf("got %d items, error %v; want the one under the prefix", len(all), err)
	}
	for _, odd := range []string{"50%", "a_b"} { // what a pattern would take for more than it says
		b.must(h.Store.PutItem(b.ctx, b.job, odd+"1", nil))
		b.must(h.Store.PutItem(b.ctx, b.job, strings.NewReplacer("%", "xx", "_", "x").Replace(odd)+"1", nil))
		found, _, err := h.Store.Items(b.ctx, b.job, odd, "")
		if err != nil || len(found) != 1 {
			t.Errorf("under %q: got %d items, error %v; want 1", odd, len(found), err)
		}
	}
}

func newReply(key pipeline.ReplyKey, text string) pipeline.Reply {
	return pipeline.Reply{
		Key: key, Text: text, Model: "scripted@1", Usage: pipeline.Usage{Input: 10, Output: 3, CacheRead: 1},
		Cost: 70, Job: "job", Task: pipeline.WorkTask(1), Call: "s1c1", Worker: "A", At: T0,
	}
}

func replyWinner(t *testing.T, h Harness) {
	b := newBench(t, h)
	key := pipeline.ReplyKey(b.job)
	first := newReply(key, `{"score":1}`)
	loses(b, "PutReply", func(s pipeline.Store) error { _, err := s.PutReply(b.ctx, first); return err })
	for _, text := range []string{first.Text, "the loser's"} {
		stands, err := h.Store.PutReply(b.ctx, newReply(key, text))
		if err != nil || stands != first {
			t.Errorf("got %s, error %v; want the first", pipeline.Encode(stands), err)
		}
	}
}

func repliesInBatches(t *testing.T, h Harness) {
	b := newBench(t, h)
	var keys []pipeline.ReplyKey
	for n := range pipeline.MaxRead + 1 {
		key := pipeline.ReplyKey(fmt.Sprintf("%s-%03d", b.job, n))
		keys = append(keys, key)
		if n%2 == 0 {
			_, err := h.Store.PutReply(b.ctx, newReply(key, fmt.Sprint(n)))
			b.must(err)
		}
	}
	if _, _, err := h.Store.Replies(b.ctx, keys); err == nil {
		t.Errorf("a batch of %d keys was read", len(keys))
	}
	found := map[pipeline.ReplyKey]pipeline.Reply{}
	for ask, rounds := keys[:pipeline.MaxRead], 0; len(ask) > 0; rounds++ {
		if rounds > pipeline.MaxRead {
			t.Fatalf("%d keys are still unprocessed", len(ask))
		}
		some, unprocessed, err := h.Store.Replies(b.ctx, ask)
		b.must(err)
		for key, reply := range some {
			found[key] = reply
		}
		ask = unprocessed
	}
	for n, key := range keys[:pipeline.MaxRead] {
		reply, ok := found[key]
		if ok != (n%2 == 0) || (ok && reply != newReply(key, fmt.Sprint(n))) {
			t.Errorf("key %d: found %v: %s", n, ok, pipeline.Encode(reply))
		}
	}
	none, unprocessed, err := h.Store.Replies(b.ctx, nil)
	if err != nil || len(none)+len(unprocessed) > 0 {
		t.Errorf("no keys: got %d and %d, error %v; want nothing", len(none), len(unprocessed), err)
	}
}

func findingsOnce(t *testing.T, h Harness) {
	b := newBench(t, h)
	group := func(task, stage int, generation int64, title string) pipeline.FindingGroup {
		return pipeline.FindingGroup{
			Job: b.job, Task: pipeline.WorkTask(task), Stage: stage, Generation: generation, At: T0,
			Findings: []pipeline.Finding{{ID: title, Title: title, Start: -1, Contributors: []string{"s1c1"}}},
		}
	}
	puts := []pipeline.FindingGroup{
		group(1, 1, 1, "a"), group(2, 1, 1, "b"), group(1, 1, 1, "a again"), group(1, 2, 1, "c"), group(1, 1, 2, "d"),
	}
	loses(b, "PutFindings", func(s pipeline.Store) error { return s.PutFindings(b.ctx, puts[0]) })
	for _, g := range puts {
		b.must(h.Store.PutFindings(b.ctx, g))
	}
	var titles []string
	var after int64
	for {
		groups, err := h.Store.Findings(b.ctx, b.job, after, 2)
		b.must(err)
		if len(groups) > 2 {
			t.Fatalf("got %d groups, want at most 2", len(groups))
		}
		if len(groups) == 0 {
			break
		}
		for _, g := range groups {
			if g.Seq <= after {
				t.Fatalf("group %d comes after %d", g.Seq, after)
			}
			after = g.Seq
			titles = append(titles, g.Findings[0].Title)
		}
	}
	if want := []string{"a", "b", "c", "d"}; !slices.Equal(titles, want) {
		t.Errorf("got %v, want %v", titles, want)
	}
	all, err := h.Store.Findings(b.ctx, b.job, 0, 100)
	b.must(err)
	want := puts[0]
	want.Seq = all[0].Seq
	if got := pipeline.Encode(all[0]); !bytes.Equal(got, pipeline.Encode(want)) {
		t.Errorf("got %s, want %s", got, pipeline.Encode(want))
	}
	none, err := h.Store.Findings(b.ctx, b.job+"-other", 0, 100)
	if err != nil || len(none) > 0 {
		t.Errorf("another job: got %d groups, error %v; want none", len(none), err)
	}
}

func blobsAreKept(t *testing.T, h Harness) {
	b := newBench(t, h)
	key := pipeline.DocumentKey(string(b.job))
	_, err := h.Blobs.Blob(b.ctx, key)
	b.fails(err, pipeline.ErrNotFound)
	for _, body := range [][]byte{bytes.Repeat([]byte("long "), 500_000), []byte("short"), {}} {
		b.must(h.Blobs.PutBlob(b.ctx, key, body))
		got, err := h.Blobs.Blob(b.ctx, key)
		if err != nil || !bytes.Equal(got, body) {
			t.Errorf("got %d bytes, error %v; want %d", len(got), err, len(body))
		}
	}
}

func bodiesAreCopied(t *testing.T, h Harness) {
	b := newBench(t, h)
	body := []byte("as it was put")
	b.must(h.Store.PutItem(b.ctx, b.job, "key", body))
	b.must(h.Blobs.PutBlob(b.ctx, string(b.job), body))
	copy(body, "XXXXXXXX")
	item, err := h.Store.Item(b.ctx, b.job, "key")
	b.must(err)
	copy(item, "YYYYYYYY")
	item, err = h.Store.Item(b.ctx, b.job, "key")
	b.must(err)
	blob, err := h.Blobs.Blob(b.ctx, string(b.job))
	b.must(err)
	if string(item) != "as it was put" || string(blob) != "as it was put" {
		t.Errorf("got %q and %q, want them as they were put", item, blob)
	}
	row := b.row(func(row *pipeline.Task) { row.Accepted, row.Bodies = 1, []int64{7} })
	row.Bodies[0] = 99
	got := b.read(row.Ref)
	got.Bodies[0] = 98
	if again := b.read(row.Ref); again.Body(1) != 7 {
		t.Errorf("got body %d, want 7", again.Body(1))
	}
}
