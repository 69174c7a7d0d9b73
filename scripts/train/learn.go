package main

import (
	"math"
	"math/rand/v2"
	"runtime"
	"sync"

	"holdfast/pkg/offline"
)

// The learner is logistic regression, one for each kind, by FTRL-proximal, which leaves most weights at 0.
const (
	rate    = 0.3
	beta    = 1.0
	lasso   = 0.25
	ridge   = 1.0
	epochs  = 5
	stretch = 4     // weights are learned as a quarter of what they are worth
	sure    = 0.003 // a sentence this unlikely to be of a kind, and that is not, teaches it nothing; a tenth of it, and it is not looked at again
	first   = -3.0  // the bias before anything is learned: clauses are rare
)

// learned are the weights of one kind.
type learned struct {
	weights []float32 // one for each feature
	bias    float32
}

func (l *learned) margin(features []uint32) float64 {
	sum := float64(0)
	for _, f := range features {
		sum += float64(l.weights[f])
	}
	return sum/math.Sqrt(float64(len(features)+1)) + float64(l.bias)
}

// learn trains all kinds, each by itself: the same samples in the same order give the same weights.
func learn(samples []sample, kinds int) []learned {
	all := make([]learned, kinds)
	orders := make([][]int, epochs)
	for e := range orders {
		orders[e] = rand.New(rand.NewPCG(uint64(e), 1)).Perm(len(samples))
	}
	var wg sync.WaitGroup
	turns := make(chan int)
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for k := range turns {
				all[k] = learnOne(samples, k, orders)
			}
		})
	}
	for k := range kinds {
		turns <- k
	}
	close(turns)
	wg.Wait()
	return all
}

func learnOne(samples []sample, kind int, orders [][]int) learned {
	const n = 1 << offline.FeatureBits
	l := learner{learned: learned{make([]float32, n), first}, sum: make([]float32, n), squares: make([]float32, n), biasSquares: 1}
	dull := make([]bool, len(samples))
	for _, order := range orders {
		for _, i := range order {
			s := &samples[i]
			switch {
			case dull[i]:
			case s.is(kind):
				l.teach(s.features, 1)
			case !s.touches(kind):
				dull[i] = l.teach(s.features, 0) < sure/10
			}
		}
	}
	return l.learned
}

type learner struct {
	learned
	sum, squares []float32
	biasSquares  float64
}

// teach corrects the weights by one sentence, and returns how likely it seemed before.
func (l *learner) teach(features []uint32, target float64) float64 {
	p := 1 / (1 + math.Exp(-l.margin(features)))
	if target == 0 && p < sure {
		return p
	}
	g := p - target
	l.biasSquares += g * g
	l.bias -= float32(rate / (beta + math.Sqrt(l.biasSquares)) * g)
	step := g * stretch / math.Sqrt(float64(len(features)+1))
	for _, f := range features {
		old := float64(l.squares[f])
		now := old + step*step
		sigma := (math.Sqrt(now) - math.Sqrt(old)) / rate
		l.sum[f] += float32(step - sigma*float64(l.weights[f])/stretch)
		l.squares[f] = float32(now)
		l.weights[f] = stretch * float32(proximal(float64(l.sum[f]), now))
	}
	return p
}

func proximal(z, n float64) float64 {
	if math.Abs(z) <= lasso {
		return 0
	}
	return -(z - math.Copysign(lasso, z)) / ((beta+math.Sqrt(n))/rate + ridge)
}

// pack rounds the weights to a byte each.
func pack(all []learned, limits limits) ([]byte, error) {
	kinds := make([]offline.Kind, len(all))
	rounded := make([][]int8, len(all))
	for k, l := range all {
		greatest := float32(0)
		for _, w := range l.weights {
			greatest = max(greatest, float32(math.Abs(float64(w))))
		}
		scale := greatest / 127
		rounded[k] = make([]int8, len(l.weights))
		for f, w := range l.weights {
			if w != 0 {
				rounded[k][f] = int8(math.Round(float64(w / scale)))
			}
		}
		kinds[k] = offline.Kind{Name: offline.Clauses()[k].Kind, Bias: l.bias, Scale: scale, Find: limits.find[k], Keep: limits.keep[k]}
	}
	return offline.PackClassifier(kinds, rounded)
}
