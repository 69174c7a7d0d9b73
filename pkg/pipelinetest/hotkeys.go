package pipelinetest

import (
	"encoding/json"
	"maps"
	"sync"
)

// HotKeys picks, for a [Proxy] to refuse, the requests that a hot partition of DynamoDB would: those of a key, or of a
// range of keys, that had more than its share of the last requests. It counts requests and no seconds, so it is as
// severe on a slow machine.
type HotKeys struct {
	Window int // the last so many requests are looked at
	Writes int // of them to one key at most
	Reads  int

	mu      sync.Mutex
	recent  []string
	shares  map[string]int
	refused map[string]int
}

// Hot says that the request is for a key that is hot, and counts the request.
func (h *HotKeys) Hot(c Call) bool {
	key, write := keyOf(c)
	if key == "" {
		return false
	}
	most := h.Reads
	if write {
		most = h.Writes
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.shares == nil {
		h.shares, h.refused = map[string]int{}, map[string]int{}
	}
	hot := h.shares[key] >= most
	took := key
	if hot {
		h.refused[key]++
		took = "" // time goes by, and nothing is taken
	}
	h.shares[took]++
	if h.recent = append(h.recent, took); len(h.recent) > h.Window {
		h.shares[h.recent[0]]--
		h.recent = h.recent[1:]
	}
	return hot
}

// Refused is how many requests were picked, by key: "write budget of job#0123-1", "read task#... of job#0123-1".
func (h *HotKeys) Refused() map[string]int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return maps.Clone(h.refused)
}

// keyOf is the key that a request is for, and whether it writes; of a query the partition and the beginning of its keys;
// "" for requests of several keys.
func keyOf(c Call) (key string, write bool) {
	type attribute = map[string]any
	var in struct{ Item, Key, ExpressionAttributeValues map[string]attribute }
	if json.Unmarshal([]byte(c.Body), &in) != nil {
		return "", false
	}
	named := func(word string, row map[string]attribute) string {
		pk, _ := row["pk"]["S"].(string)
		sk, _ := row["sk"]["S"].(string)
		return word + " " + sk + " of " + pk
	}
	switch c.Op {
	case "PutItem":
		return named("write", in.Item), true
	case "UpdateItem", "DeleteItem":
		return named("write", in.Key), true
	case "GetItem":
		return named("read", in.Key), false
	case "Query":
		partition, _ := in.ExpressionAttributeValues[":v0"]["S"].(string)
		begin, _ := in.ExpressionAttributeValues[":v1"]["S"].(string)
		return "read " + begin + "... of " + partition, false
	}
	return "", false
}
