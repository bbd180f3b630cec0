package main

import "strings"

// sr3Synonyms are older and shorter names of options that matter here.
var sr3Synonyms = map[string]string{
	"b": "broker", "c": "include", "config": "include", "ex": "exchange",
	"exchange_split": "exchangeSplit", "exchange_suffix": "exchangeSuffix",
	"post_exchange_split": "post_exchangeSplit", "post_exchange_suffix": "post_exchangeSuffix",
	"post_topic_prefix": "post_topicPrefix", "topic_prefix": "topicPrefix",
	"post_rate_limit": "messageRateMax", "message_rate_max": "messageRateMax",
	"message_ttl": "post_messageAgeMax", "message-ttl": "post_messageAgeMax",
	"declare_exchange": "exchangeDeclare", "tls_rigour": "tlsRigour",
	"post_base_dir": "post_baseDir", "post_basedir": "post_baseDir", "post_base_url": "post_baseUrl", "post_baseurl": "post_baseUrl",
	"url": "post_baseUrl", "document_root": "post_baseDir", "to": "to_clusters", "sum": "identity", "integrity": "identity",
	"suppress_duplicates": "nodupe_ttl", "caching": "nodupe_ttl", "cache": "nodupe_ttl", "sd": "nodupe_ttl", "nd": "nodupe_ttl",
	"heartbeat": "housekeeping", "events": "fileEvents", "e": "fileEvents", "instance": "instances", "loglevel": "logLevel", "ll": "logLevel",
	"p": "path", "queue": "queueName", "queue_name": "queueName", "qn": "queueName", "realpath": "realpathPost", "realpath_post": "realpathPost",
	"h": "header", "cb": "callback", "flowcb": "callback", "flow_callback": "callback", "plugin": "callback", "on_post": "callback", "on_message": "callback",
}

// canonicalSR3 is the present name of an option.
func canonicalSR3(name string) string {
	if present, ok := sr3Synonyms[name]; ok {
		return present
	}
	return name
}

// What happens to options that are not carried over.
const (
	byWriter   = "whoever writes the records decides that"
	byMount    = "what is written into the mount is published, all of it"
	ofConsumer = "it is of consumers"
	ofDaemon   = "it is of Sarracenia's own processes"
)

// sr3Reasons say why an option is not carried over.
var sr3Reasons = map[string]string{
	"post_baseUrl": byWriter, "post_baseDir": byWriter, "header": byWriter, "source": byWriter, "to_clusters": byWriter, "cluster": byWriter,
	"identity": byWriter, "inline": byWriter, "inlineByteMax": byWriter, "inlineEncoding": byWriter, "blockSize": byWriter, "strip": byWriter,
	"flatten": byWriter, "rename": byWriter, "mirror": byWriter, "realpathPost": byWriter, "topicCopy": byWriter, "permCopy": byWriter, "timeCopy": byWriter,
	"path": byMount, "accept": byMount, "acceptUnmatched": byMount, "fileEvents": byMount, "recursive": byMount, "sleep": byMount,
	"follow_symlinks": byMount, "force_polling": byMount, "fileAgeMax": byMount, "fileAgeMin": byMount, "directory": byMount, "shim_post_minterval": byMount,
	"reject":     byMount + "; the shim's configuration has to reject the mountpoint",
	"nodupe_ttl": "repeats are left out only if they are in one file, byte for byte", "nodupe_basis": "repeats are left out only if they are in one file, byte for byte",
	"housekeeping": "what waits goes out as soon as the broker takes it", "sanity_log_dead": ofDaemon,
	"post_messageAgeMax": "it has no effect in Sarracenia either; ttl sets aside what is too old",
	"instances":          "one process publishes", "logLevel": "log_level is of the whole daemon", "debug": "log_level is of the whole daemon",
	"logRotateCount": ofDaemon, "logRotateInterval": ofDaemon, "logStdout": ofDaemon, "logEvents": ofDaemon, "logReject": ofDaemon, "logFormat": ofDaemon,
	"statehost": ofDaemon, "permLog": ofDaemon, "action": ofDaemon, "admin": ofDaemon, "feeder": ofDaemon, "batch": "window is how many are on their way",
	"callback": "there are no plugins", "broker": ofConsumer, "exchange": ofConsumer, "exchangeSplit": ofConsumer, "exchangeSuffix": ofConsumer,
	"topicPrefix": ofConsumer, "subtopic": ofConsumer, "queueName": ofConsumer, "queueShare": ofConsumer, "queueBind": ofConsumer, "queueDeclare": ofConsumer,
	"prefetch": ofConsumer, "expire": ofConsumer, "durable": ofConsumer, "attempts": "it is tried for ever, or as long as ttl and retry_ttl say",
	"retry_refilter": "messages are published as they were stored", "post_format": byWriter, "timeout": "confirm_timeout is how long a confirm may take",
	"vip": "each host publishes what is written on it", "messageRateMin": "there is no least rate", "messageCountMax": "there is no limit to how many are published",
}

// reasonSR3 says why an option is not carried over.
func reasonSR3(key string) string {
	if reason, ok := sr3Reasons[key]; ok {
		return reason
	}
	if strings.HasPrefix(key, "on_") || strings.HasPrefix(key, "do_") {
		return sr3Reasons["callback"]
	}
	return "it has no counterpart"
}
