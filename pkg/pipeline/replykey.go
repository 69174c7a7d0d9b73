package pipeline

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"strconv"
)

// KeyOf is the reply key of a request: everything that can change the answer. max_tokens is left out: it is learned.
func KeyOf(tenant, model string, sample int, r Request) ReplyKey {
	return KeysOf(tenant, model, sample, []Request{r})[0]
}

// KeysOf is KeyOf of each request. What consecutive ones begin with in common, the part of the document, is hashed once.
func KeysOf(tenant, model string, sample int, requests []Request) []ReplyKey {
	keys := make([]ReplyKey, len(requests))
	var begun hash.Hash
	var last Request
	for i, r := range requests {
		if begun == nil || r.System != last.System || r.Shared != last.Shared {
			begun, last = sha256.New(), r
			hashParts(begun, tenant, model, strconv.Itoa(sample), r.System, r.Shared)
		}
		h := cloned(begun)
		hashParts(h, r.Prompt, string(r.Schema))
		keys[i] = ReplyKey(hex.EncodeToString(h.Sum(nil)[:16]))
	}
	return keys
}

// hashParts hashes each part with its length, so that parts do not run into one another.
func hashParts(h hash.Hash, parts ...string) {
	for _, part := range parts {
		h.Write([]byte(strconv.Itoa(len(part))))
		h.Write([]byte{':'})
		h.Write([]byte(part))
	}
}

// cloned goes on from where h is and leaves h there.
func cloned(h hash.Hash) hash.Hash {
	clone, err := h.(hash.Cloner).Clone()
	if err != nil {
		panic(fmt.Sprintf("clone a SHA-256: %v", err)) // the standard library's can be
	}
	return clone
}
