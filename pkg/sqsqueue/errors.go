package sqsqueue

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"

	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"holdfast/pkg/pipeline"
)

// Codes of SQS, under the name that the JSON protocol has for them.
const (
	codeNoQueue     = "QueueDoesNotExist"
	codeBadReceipt  = "ReceiptHandleIsInvalid"
	codeNotInFlight = "MessageNotInflight"
	codeBadValue    = "InvalidParameterValue"
)

// oldNames are the codes of the query protocol, which the SDK shows where the service names both.
var oldNames = map[string]string{
	"AWS.SimpleQueueService.NonExistentQueue":   codeNoQueue,
	"AWS.SimpleQueueService.MessageNotInflight": codeNotInFlight,
	"InvalidParameterValueException":            codeBadValue,
}

var busyCodes = map[string]bool{
	"RequestThrottled": true, "ThrottlingException": true, "Throttling": true, "OverLimit": true, "InternalError": true,
	"InternalFailure": true, "ServiceUnavailable": true, "KmsThrottled": true, "RequestTimeout": true,
}

// codeOf is the code of an error of the service; "" if it is none.
func codeOf(err error) string {
	var api smithy.APIError
	if !errors.As(err, &api) {
		return ""
	}
	code := api.ErrorCode()
	if name, is := oldNames[code]; is {
		return name
	}
	return code
}

// isOldReceipt says that a receipt does not count any more, in any of the ways in which SQS says so.
func isOldReceipt(err error) bool {
	switch codeOf(err) {
	case codeBadReceipt, codeNotInFlight:
		return true
	case codeBadValue:
		text := strings.ToLower(err.Error())
		return strings.Contains(text, "receipt handle") || strings.Contains(text, "does not exist") || strings.Contains(text, "not available")
	}
	return false
}

// explain gives an error of the SDK the name that the ports have for it, and tells a person what to do.
func explain(ctx context.Context, err error) error {
	var response *smithyhttp.ResponseError
	var network net.Error
	switch code := codeOf(err); {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case code == codeNoQueue:
		return fmt.Errorf("there is no such queue: %w (%w)", pipeline.ErrNotMade, err)
	case busyCodes[code], errors.As(err, &network),
		errors.As(err, &response) && response.HTTPStatusCode() >= http.StatusInternalServerError:
		return fmt.Errorf("%w (%w)", pipeline.ErrBusy, err)
	}
	return err
}
