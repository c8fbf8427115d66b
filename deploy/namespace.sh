#!/bin/sh
# Make the namespace, with its retention, and the two search attributes that runs are started with. Running it again
# changes nothing but the retention. Settings: TEMPORAL_ADDRESS, TEMPORAL_NAMESPACE (and what else the temporal command
# reads), TEMPORAL_RETENTION, TEMPORAL_ATTEMPTS (how often the server is asked, two seconds apart).
set -eu
namespace=${TEMPORAL_NAMESPACE:-default}
retention=${TEMPORAL_RETENTION:-30d}
left=${TEMPORAL_ATTEMPTS:-60}

until temporal operator cluster health >/dev/null 2>&1; do
    left=$((left - 1))
    if [ "$left" -le 0 ]; then
        echo "Temporal does not answer at ${TEMPORAL_ADDRESS:-localhost:7233}:" >&2
        temporal operator cluster health >&2
        exit 1
    fi
    sleep 2
done

if temporal operator namespace describe --namespace "$namespace" >/dev/null 2>&1; then
    temporal operator namespace update --namespace "$namespace" --retention "$retention"
else
    temporal operator namespace create --namespace "$namespace" --retention "$retention"
fi

# A namespace that was only just made is not known everywhere at once.
for attribute in GatewrightPipeline GatewrightSession; do
    left=15
    until said=$(temporal operator search-attribute create --namespace "$namespace" \
        --name "$attribute" --type Keyword 2>&1); do
        left=$((left - 1))
        case $said in *"is not found"*) ;; *) left=0 ;; esac
        if [ "$left" -le 0 ]; then
            echo "search attribute $attribute: $said" >&2
            exit 1
        fi
        sleep 2
    done
done
echo "namespace $namespace is ready"
