package dynamostore

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"holdfast/pkg/pipeline"
)

// Codes of DynamoDB's errors, where the code says more than the type.
const (
	codeRefused    = "ConditionalCheckFailedException"
	codeCancelled  = "TransactionCanceledException"
	codeConflict   = "TransactionConflictException"
	codeInProgress = "TransactionInProgressException"
	codeNoTable    = "ResourceNotFoundException"
	codeInvalid    = "ValidationException"
	codeDenied     = "AccessDeniedException"
)

// Codes of the reasons of a cancelled transaction.
const (
	reasonNone     = "None"
	reasonRefused  = "ConditionalCheckFailed"
	reasonConflict = "TransactionConflict"
	reasonInvalid  = "ValidationError"
	reasonTooLarge = "ItemCollectionSizeLimitExceeded"
)

// busyCodes say "later": the write may have been made or not.
var busyCodes = map[string]bool{
	"ProvisionedThroughputExceededException": true, "ThrottlingException": true, "RequestLimitExceeded": true,
	"Throttling": true, "LimitExceededException": true, "InternalServerError": true, "InternalFailure": true,
	"ServiceUnavailable": true, "ServiceUnavailableException": true, "RequestTimeout": true, codeInProgress: true,
}

// explain gives an error of the SDK the name that the ports have for it, and tells a person what to do. It keeps every
// other error as it is.
func explain(ctx context.Context, err error) error {
	code := codeOf(err)
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case code == codeConflict:
		return fmt.Errorf("%w (%w)", pipeline.ErrConflict, err)
	case busyCodes[code], isUnanswered(err):
		return fmt.Errorf("%w (%w)", pipeline.ErrBusy, err)
	case code == codeInvalid && strings.Contains(strings.ToLower(err.Error()), "item size"):
		return fmt.Errorf("%w (%w)", pipeline.ErrTooLarge, err)
	case code == codeNoTable:
		return fmt.Errorf("there is no such table: %w (%w)", pipeline.ErrNotMade, err)
	case code == codeDenied:
		return fmt.Errorf("these credentials may not do that; the role needs the rights of the stack's workers (%w)", err)
	}
	return err
}

// codeOf is the code of an error of the service; "" if it is none.
func codeOf(err error) string {
	var api smithy.APIError
	if errors.As(err, &api) {
		return api.ErrorCode()
	}
	return ""
}

// isUnanswered says that no answer came, or one that only says that the service is unwell.
func isUnanswered(err error) bool {
	var response *smithyhttp.ResponseError
	if errors.As(err, &response) && response.HTTPStatusCode() >= http.StatusInternalServerError {
		return true
	}
	var sent *smithyhttp.RequestSendError
	var network net.Error
	return errors.As(err, &sent) || errors.As(err, &network) || errors.Is(err, context.DeadlineExceeded)
}

// refused says that a condition was not met, and shows the row that was there; nil if there was none.
func refused(err error) (old item, is bool) {
	var failed *types.ConditionalCheckFailedException
	if errors.As(err, &failed) {
		return failed.Item, true
	}
	return nil, codeOf(err) == codeRefused // whatever type it came in
}

// cancelled is why each part of a transaction that was not made did not want to be.
func cancelled(err error) (reasons []types.CancellationReason, is bool) {
	var failed *types.TransactionCanceledException
	if errors.As(err, &failed) {
		return failed.CancellationReasons, true
	}
	return nil, false
}

func reasonAt(reasons []types.CancellationReason, n int) string {
	if n >= len(reasons) || reasons[n].Code == nil {
		return reasonNone
	}
	return *reasons[n].Code
}

// explainCancelled names what cancelled a transaction. What no later sending can change comes first; a condition that
// was not met counts only if nothing else went wrong; reasons that cannot be read are never taken for a refusal.
func explainCancelled(ctx context.Context, err error) error {
	reasons, is := cancelled(err)
	if !is {
		return explain(ctx, err)
	}
	seen := map[string]bool{}
	for n := range reasons {
		seen[reasonAt(reasons, n)] = true
	}
	delete(seen, reasonNone)
	switch {
	case seen[reasonInvalid] && strings.Contains(strings.ToLower(err.Error()), "item size"), seen[reasonTooLarge]:
		return fmt.Errorf("%w (%w)", pipeline.ErrTooLarge, err)
	case seen[reasonInvalid]:
		return err
	case len(seen) == 1 && seen[reasonRefused]:
		return fmt.Errorf("%w (%w)", pipeline.ErrFenced, err)
	case len(seen) == 1 && seen[reasonConflict]:
		return fmt.Errorf("%w (%w)", pipeline.ErrConflict, err)
	case seen[reasonConflict] && seen[reasonRefused] && len(seen) == 2:
		return fmt.Errorf("%w (%w)", pipeline.ErrConflict, err)
	}
	return fmt.Errorf("%w (%w)", pipeline.ErrBusy, err)
}

func isFenced(err error) bool { return errors.Is(err, pipeline.ErrFenced) }
