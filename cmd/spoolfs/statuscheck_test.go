package main

import (
	"strings"
	"testing"
	"time"
)

// TestThresholds_Judge: the state of monitoring is the worst of health and of the
// thresholds, and where a threshold is given it decides alone.
func TestThresholds_Judge(t *testing.T) {
	warning := func(code string) health {
		return health{Level: levelWarning, Problems: []problem{{Code: code, Level: levelWarning, Text: code + " is|so"}}}
	}
	busy := status{Queue: queueStatus{messageCounts: messageCounts{Ready: 50, Leased: 40, Delayed: 10, OldestReadySeconds: 120, Dead: 3, Partial: 1, Bytes: 900}, FreeBytes: 100}}
	for name, tt := range map[string]struct {
		limits thresholds
		health health
		code   int
		text   string
	}{
		"all is well":      {code: monitorOK, text: "SPOOLFS OK - , 100 waiting, oldest 2m0s, 3 dead | waiting=100;;;0 oldest=120s;;;0 dead=3;;;0 partial=1;;;0 set_aside=4;;;0 fill=90%;;;0 bytes=900B;;;0 ingested=0c;;;0 confirmed=0c;;;0"},
		"health warns":     {health: warning("broker-away"), code: monitorWarning, text: "SPOOLFS WARNING - broker-away is/so; , 100"},
		"health critical":  {health: health{Problems: []problem{{Level: levelCritical, Text: "bad"}}}, code: monitorCritical, text: "SPOOLFS CRITICAL - bad; "},
		"waiting below":    {limits: thresholds{WarnWaiting: 101}, code: monitorOK},
		"waiting warns":    {limits: thresholds{WarnWaiting: 100, CritWaiting: 101}, code: monitorWarning, text: "messages that wait: 100"},
		"waiting critical": {limits: thresholds{WarnWaiting: 10, CritWaiting: 100}, code: monitorCritical, text: "waiting=100;10;100;0"},
		"age warns":        {limits: thresholds{WarnAge: 2 * time.Minute}, code: monitorWarning, text: "the oldest waits for 2m0s"},
		"age critical":     {limits: thresholds{CritAge: time.Minute}, code: monitorCritical, text: "oldest=120s;;60;0"},
		"dead warns":       {limits: thresholds{WarnDead: 4}, code: monitorWarning, text: "set aside: 4"},
		"dead allowed":     {limits: thresholds{WarnDead: 5}, health: warning("dead-letters"), code: monitorOK},
		"dead as health":   {health: warning("dead-letters"), code: monitorWarning},
		"fill warns":       {limits: thresholds{WarnFill: 90, CritFill: 95}, code: monitorWarning, text: "the store is full to 90 %"},
		"fill allowed":     {limits: thresholds{WarnFill: 91}, health: warning("filling"), code: monitorOK},
	} {
		s := busy
		s.Health = tt.health
		k := tt.limits.judge(s)
		if k.Code != tt.code || !strings.Contains(k.line(), tt.text) || strings.Count(k.line(), "|") != 1 || strings.Contains(k.line(), "\n") {
			t.Errorf("%s: code %d, want %d, in %q, which should have %q", name, k.Code, tt.code, k.line(), tt.text)
		}
	}
	idle := status{Queue: queueStatus{messageCounts: messageCounts{OldestReadySeconds: 99}}}
	if k := (&thresholds{WarnAge: time.Second}).judge(idle); k.Code != monitorOK {
		t.Errorf("nothing waits: %q", k.line())
	}
}
