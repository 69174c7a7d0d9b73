package dynamostore

import (
	"bytes"
	"reflect"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"holdfast/pkg/pipeline"
	"holdfast/pkg/pipelinetest"
)

// A missing column counts as its zero: the clause says so exactly where zero would hold.
func TestMissingCountsAsZero(t *testing.T) {
	for text, c := range map[string]clause{
		"(attribute_not_exists(#n) OR #n = :v0)":  equals("n", 0),
		"#n = :v0":                                equals("n", 1),
		"(attribute_not_exists(#n) OR #n < :v0)":  below("n", 3),
		"#n < :v0":                                below("n", 0),
		"(attribute_not_exists(#n) OR #n <= :v0)": atMost("n", 0),
		"#n <= :v0":                               atMost("n", -1),
		"(attribute_not_exists(#n) OR #n >= :v0)": atLeast("n", 0),
		"#n >= :v0":                               atLeast("n", 1),
	} {
		if got := c(newExpression()); got != text {
			t.Errorf("got %s, want %s", got, text)
		}
	}
	if got := reads("status", "")(newExpression()); strings.Contains(got, "not_exists") {
		t.Errorf("got %s: a text that is missing must never match, or a write could bring a row back", got)
	}
}

func TestRowsAreReadAsTheyWerePut(t *testing.T) {
	row := pipelinetest.NewRow("job-1", pipeline.WorkTask(7), func(r *pipeline.Task) {
		r.Accepted, r.Bodies, r.Buried, r.Reason = 2, []int64{3, 0}, true, pipeline.Fail(pipeline.Lost, "gone")
		r.Generation, r.ClaimedBy, r.ClaimID = 1<<40, "w", "c"
	})
	if got := taskOf(taskItem(row)); !reflect.DeepEqual(got, row) {
		t.Errorf("got %+v\nwant %+v", got, row)
	}
	bytes := 0
	for name, v := range taskItem(row) {
		bytes += len(name) + len(textIn(item{"v": v}, "v")) + 8
	}
	if bytes > 1024 {
		t.Errorf("a row has about %d bytes: each renewal would cost two write units", bytes)
	}
}

// What a person left in a row hides neither it nor the others of its page.
func TestOddColumnsAreRead(t *testing.T) {
	row := taskItem(pipelinetest.NewRow("job-1", pipeline.WorkTask(7)))
	row["attempts"] = &types.AttributeValueMemberS{Value: "three"}
	row["generation"] = &types.AttributeValueMemberN{Value: "1.5"}
	row["reason"] = &types.AttributeValueMemberS{Value: "{no JSON"}
	row["body_x"], row["body_-1"] = valueOf(int64(1)), valueOf(int64(1))
	row["status"] = &types.AttributeValueMemberBOOL{Value: true}
	got := taskOf(row)
	if got.ID != pipeline.WorkTask(7) || got.Attempts != 0 || got.Generation != 0 || got.Status != "" || got.Reason.Kind != pipeline.Broken || len(got.Bodies) != 0 {
		t.Errorf("got %+v", got)
	}
}

func TestBodiesAreSqueezed(t *testing.T) {
	for _, body := range [][]byte{nil, []byte("short"), []byte(strings.Repeat("a long text ", 500)), bytes.Repeat([]byte{0, 255, 7}, 1000)} {
		row := item{}
		setBody(row, body)
		if got, err := bodyIn(row); err != nil || !bytes.Equal(got, body) {
			t.Errorf("got %d bytes, error %v; want %d", len(got), err, len(body))
		}
		if len(row) != 1 {
			t.Errorf("a body has %d columns, want one", len(row))
		}
	}
	row := item{}
	setBody(row, []byte(strings.Repeat("a long text ", 500)))
	short := bytesIn(row, squeezedKey)
	if len(short) == 0 || len(short) > 600 {
		t.Errorf("6,000 bytes became %d, want far fewer", len(short))
	}
	row[squeezedKey] = valueOf(short[:len(short)/2])
	if _, err := bodyIn(row); err == nil {
		t.Error("half a body was read")
	}
}

func TestReservationsAreNamed(t *testing.T) {
	for _, r := range []pipeline.Reservation{
		{Task: pipeline.WorkTask(7), Generation: 3, Stage: 2, Part: 1, Amount: 40},
		{Task: "finalize#1", Amount: 0},
	} {
		if got, ok := reservationOf(openColumn(r), int64(r.Amount)); !ok || got != r {
			t.Errorf("got %+v, want %+v", got, r)
		}
	}
}
