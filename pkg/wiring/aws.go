package wiring

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"

	"holdfast/pkg/awsclient"
	"holdfast/pkg/dynamostore"
	"holdfast/pkg/pipeline"
	"holdfast/pkg/s3blob"
	"holdfast/pkg/sqsqueue"
)

// AWS is how the backend on AWS is opened.
type AWS struct {
	Stack    string // prefix of the names of tables, queues and bucket
	Endpoint string // "" is AWS itself; else one address for all services: LocalStack
	DynamoDB string // "" is Endpoint; else an address of the store's own, e.g. a DynamoDB without LocalStack before it
	Region   string // "" is what the environment or the profile says
	Bucket   string // "" is the stack's own name for it; bucket names are shared by everybody on AWS
	Inflight int    // requests at once
	Control  sqsqueue.Addresses
	Work     sqsqueue.Addresses
	// Transport, if set, stands between the clients and the network.
	Transport func(http.RoundTripper) http.RoundTripper
}

func (a AWS) clients(ctx context.Context) (*awsclient.Clients, error) {
	return awsclient.New(ctx, awsclient.Settings{Endpoint: a.Endpoint, DynamoDB: a.DynamoDB, Region: a.Region, Inflight: a.Inflight, Transport: a.Transport})
}

func (a AWS) bucket() string {
	if a.Bucket != "" {
		return a.Bucket
	}
	return s3blob.Bucket(a.Stack)
}

// OpenAWS opens the backend of a deployment, which must be there: see [CreateAWS].
func OpenAWS(ctx context.Context, a AWS, p pipeline.Policy) (*Backend, error) {
	clients, err := a.clients(ctx)
	if err != nil {
		return nil, err
	}
	a.Region = clients.Region()
	client := clients.SQS()
	control, err := sqsqueue.Open(ctx, client, a.Stack, pipeline.ControlQueue, a.Control, p)
	if err != nil {
		return nil, a.where(err)
	}
	work, err := sqsqueue.Open(ctx, client, a.Stack, pipeline.WorkQueue, a.Work, p)
	if err != nil {
		return nil, a.where(err)
	}
	store := dynamostore.New(clients.DynamoDB(), a.Stack, dynamostore.Keeping{For: p.Retention, Now: pipeline.NewRealClock().Now})
	// One question before all others: are the tables there, and what time is it there?
	if _, err := store.Job(ctx, "-"); err != nil && !errors.Is(err, pipeline.ErrNotFound) {
		return nil, a.where(err)
	}
	blobs := s3blob.New(clients.S3(), a.bucket())
	return &Backend{
		Store:   store,
		Keeper:  store,
		Blobs:   blobs,
		Queues:  pipeline.Queues{Control: control, Work: work},
		Skew:    clients.Skew,
		Receipt: sqsqueue.Receipt,
		Shared:  blobs,
		Forget: func(ctx context.Context, job pipeline.Job, replies []pipeline.ReplyKey, keys []string) error {
			if err := blobs.Remove(ctx, keys...); err != nil { // the rows go last: they say what there is
				return err
			}
			return store.Forget(ctx, job, replies)
		},
		CloseIdle: clients.Close,
		Close: func() error {
			clients.Close()
			return nil
		},
	}, nil
}

// where says which deployment an error is about, and what to do where that is known.
func (a AWS) where(err error) error {
	if err == nil {
		return nil
	}
	at := cmp.Or(a.Endpoint, "AWS")
	if a.Region != "" {
		at += ", region " + a.Region
	}
	if advice := awsclient.Advice(err, a.Endpoint); advice != "" {
		return fmt.Errorf("stack %s at %s: %s (%w)", a.Stack, at, advice, err)
	}
	return fmt.Errorf("stack %s at %s: %w", a.Stack, at, err)
}

// CreateAWS makes what a deployment keeps its state in, unless it is there: two tables, two queues with a dead-letter
// queue each, a bucket. On AWS itself the stack makes them, from the same definitions.
func CreateAWS(ctx context.Context, a AWS, p pipeline.Policy) error {
	clients, err := a.clients(ctx)
	if err != nil {
		return err
	}
	defer clients.Close()
	a.Region = clients.Region()
	// The bucket comes first: its name alone may be somebody else's, and then nothing is left half-made.
	if err := s3blob.Create(ctx, clients.S3(), a.bucket(), clients.Region()); err != nil {
		return a.where(err)
	}
	if err := dynamostore.Create(ctx, clients.DynamoDB(), a.Stack); err != nil {
		return a.where(err)
	}
	for _, queue := range []string{pipeline.ControlQueue, pipeline.WorkQueue} {
		if err := sqsqueue.Create(ctx, clients.SQS(), a.Stack, queue, p); err != nil {
			return a.where(err)
		}
	}
	return nil
}

// DeleteAWS removes all of it, and with it every job.
func DeleteAWS(ctx context.Context, a AWS) error {
	clients, err := a.clients(ctx)
	if err != nil {
		return err
	}
	defer clients.Close()
	a.Region = clients.Region()
	errs := []error{dynamostore.Delete(ctx, clients.DynamoDB(), a.Stack)}
	for _, queue := range []string{pipeline.ControlQueue, pipeline.WorkQueue} {
		errs = append(errs, sqsqueue.Delete(ctx, clients.SQS(), a.Stack, queue))
	}
	errs = append(errs, s3blob.Delete(ctx, clients.S3(), a.bucket()))
	return a.where(errors.Join(errs...))
}
