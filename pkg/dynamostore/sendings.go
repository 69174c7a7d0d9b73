package dynamostore

import (
	"context"
	"reflect"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/smithy-go/middleware"
)

// sendings counts how often the SDK sent one request. A refusal of a request that was sent once means what it says; of
// one that was sent again it may be that the first copy landed and only its answer was lost.
type sendings int

// count is an option of a call.
func (n *sendings) count(o *dynamodb.Options) {
	o.APIOptions = append(o.APIOptions, func(stack *middleware.Stack) error {
		return stack.Finalize.Insert(middleware.FinalizeMiddlewareFunc("CountSendings",
			func(ctx context.Context, in middleware.FinalizeInput, next middleware.FinalizeHandler) (middleware.FinalizeOutput, middleware.Metadata, error) {
				*n++
				return next.HandleFinalize(ctx, in)
			}), "Retry", middleware.After)
	})
}

// landed says that a refused write is our own: it was sent more than once, and the row that stands shows everything
// that it sets.
func (n *sendings) landed(old item, changes []change) bool {
	if *n < 2 || len(old) == 0 {
		return false
	}
	for _, c := range changes {
		_, there := old[c.column]
		switch {
		case c.add: // how much it was before is not known; the other columns tell
		case c.remove:
			if there {
				return false
			}
		case !reflect.DeepEqual(old[c.column], valueOf(c.to)):
			return false
		}
	}
	return true
}
