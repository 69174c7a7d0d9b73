package spec

import "fmt"

// Fair looks for a run without faults that never ends although it is fair: whoever can take a step for ever takes one.
// Such a run stays, from some moment on, in one strongly connected part of the graph. It is fair if each actor either
// takes a step within the part or cannot take one in some state of it; and it has no end if no state of it is over.
// A state that is not over and has no step at all is the smallest such part.
func Fair[S comparable](g *graph[S]) (broken string, trace []string) {
	part, parts := g.parts()
	able := make([]uint32, parts) // actors that have a step in every state of the part
	acts := make([]uint32, parts) // actors that have a step within the part
	over := make([]bool, parts)
	first := make([]int32, parts)
	for i := range able {
		able[i], first[i] = 1<<maxActors-1, -1
	}
	for i := range g.states {
		p := part[i]
		if first[p] < 0 {
			first[p] = int32(i)
		}
		over[p] = over[p] || g.model.Over(&g.states[i])
		can := uint32(0)
		for e := g.from[i]; e < g.from[i+1]; e++ {
			can |= 1 << g.who[e]
			if part[g.to[e]] == p {
				acts[p] |= 1 << g.who[e]
			}
		}
		able[p] &= can
	}
	worst := int32(-1) // the one found first: its history is a shortest one
	for p := range able {
		starving := able[p] &^ acts[p] &^ (1<<Fault | 1<<Keeping)
		if !over[p] && starving == 0 && (worst < 0 || first[p] < worst) {
			worst = first[p]
		}
	}
	if worst < 0 {
		return "", nil
	}
	s := g.states[worst]
	what := "P10 stuck: nothing ever happens to it again"
	if g.from[worst+1] > g.from[worst] {
		what = fmt.Sprintf("P7/P10 a fair run that never ends; its steps: %s", g.loop(part, part[worst]))
	}
	return what, append(g.trace(int(worst)), "then "+g.model.Show(&s))
}

// loop names the steps within a part.
func (g *graph[S]) loop(part []int32, p int32) string {
	seen, text := map[string]bool{}, ""
	for i := range g.states {
		if part[i] != p {
			continue
		}
		s := g.states[i]
		for _, step := range g.model.Next(&s, nil) {
			to, known := g.find(step.To)
			if says := step.Says.String(); step.Who != Fault && known && part[to] == p && !seen[says] && len(seen) < 12 {
				seen[says] = true
				text += "; " + says
			}
		}
	}
	return text[min(len(text), 2):]
}

// parts is the strongly connected part of each state, by Tarjan's algorithm without recursion.
func (g *graph[S]) parts() (part []int32, parts int) {
	n := len(g.states)
	part = make([]int32, n)
	index, low := make([]int32, n), make([]int32, n)
	next := make([]int, n)
	var stack, calls []int32
	count := int32(0)
	for root := range n {
		if index[root] != 0 {
			continue
		}
		calls = append(calls[:0], int32(root))
		for len(calls) > 0 {
			v := calls[len(calls)-1]
			if index[v] == 0 {
				count++
				index[v], low[v], next[v] = count, count, g.from[v]
				stack = append(stack, v)
			}
			if next[v] < g.from[v+1] {
				w := g.to[next[v]]
				next[v]++
				if index[w] == 0 {
					calls = append(calls, w)
				} else if index[w] > 0 {
					low[v] = min(low[v], index[w])
				}
				continue
			}
			calls = calls[:len(calls)-1]
			if len(calls) > 0 {
				u := calls[len(calls)-1]
				low[u] = min(low[u], low[v])
			}
			if low[v] != index[v] {
				continue
			}
			for {
				w := stack[len(stack)-1]
				stack = stack[:len(stack)-1]
				index[w], part[w] = -1, int32(parts)
				if w == v {
					break
				}
			}
			parts++
		}
	}
	return part, parts
}
