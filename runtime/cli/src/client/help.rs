//! Examples for each verb.

/// For `husk get`.
pub(super) const GET: &str = "\
Examples:
  husk get pods
  husk get po web -o yaml
  husk get pods -A -o wide --show-labels
  husk get pods -l app=web -w
  husk get pods --field-selector status.phase=Running -o name
  husk get pods -o jsonpath='{range .items[*]}{.metadata.name}{\"\\n\"}{end}'
  husk get pods -o custom-columns=POD:.metadata.name,IP:.status.podIP
  husk get pod/web cm/settings
  husk get all";

/// For `husk apply`.
pub(super) const APPLY: &str = "\
Manifests are checked first, as `husk check` does it. Fields that others manage, such as what `kubectl` set, are theirs:
changing one is a conflict, unless --force-conflicts takes it.

Examples:
  husk apply -f pod.yaml
  husk apply -f manifests/
  kustomize build . | husk apply -f -
  husk apply -f pod.yaml --dry-run=server";

/// For `husk create`.
pub(super) const CREATE: &str = "\
Examples:
  husk create -f pod.yaml
  husk create -f job.yaml -o name       # with metadata.generateName: which name did it get?";

/// For `husk describe`.
pub(super) const DESCRIBE: &str = "\
Examples:
  husk describe pod web
  husk describe pods -l app=web
  husk describe node";

/// For `husk logs`.
pub(super) const LOGS: &str = "\
Examples:
  husk logs web
  husk logs web -c sidecar -f
  husk logs web --previous              # of the run before the last restart
  husk logs web --tail 20 --since 5m --timestamps
  husk logs -l app=web --all-containers --prefix";

/// For `husk exec`.
pub(super) const EXEC: &str = "\
The exit code is that of the program.

Examples:
  husk exec web -- ls /data
  husk exec web -c sidecar -- cat /etc/hosts
  echo hello | husk exec -i web -- cat
  husk exec -it web -- sh";

/// For `husk attach`.
pub(super) const ATTACH: &str = "\
Examples:
  husk attach web
  husk attach -it web -c shell";

/// For `husk delete`.
pub(super) const DELETE: &str = "\
Pods get the time that they ask for: preStop hooks, TERM to the apps, then to the sidecars, KILL when the time is over.

Examples:
  husk delete pod web
  husk delete -f pod.yaml
  husk delete pods -l app=web --grace-period 5
  husk delete pods --all --wait=false
  husk delete pod web --now";

/// For `husk events`.
pub(super) const EVENTS: &str = "\
Examples:
  husk events
  husk events --for pod/web -w
  husk events -A --types Warning";

/// For `husk timeline`.
pub(super) const TIMELINE: &str = "\
What `husk simulate` foresees, `husk timeline` shows as it came: phases and conditions, each container's states, what its probes
said, how its instances ended, and the events. Times are by this machine's clock, and since the pod was first seen.

The agent keeps some kilobytes for each pod, and the last 64 pods that are gone, in memory. After a restart of the agent
a line begins with what the pod's record still says; the last line of the table tells from when on it is complete.

Examples:
  husk timeline web
  husk timeline web --svg web.svg           a lane for each container; browsers show more where you point
  husk timeline web --since 10m             why did it restart just now?
  husk timeline web --previous              what became of the pod that had this name before?
  husk timeline web -o json | jq '.changes[] | select(.warning)'
  kubectl get --raw /api/v1/namespaces/default/pods/web/timeline";

/// For `husk top`.
pub(super) const TOP: &str = "\
Figures come from the agent's metrics API; an agent that doesn't measure says so.

Examples:
  husk top pod
  husk top pod web --containers
  husk top node";

/// For `husk debug`.
pub(super) const DEBUG: &str = "\
The new container shares the pod's network and sees what the target does. It stays in the pod's status when it has ended.

Examples:
  husk debug web --image busybox -it -- sh
  husk debug web --image busybox --target app -i -- cat /etc/hosts";

/// For `husk wait`.
pub(super) const WAIT: &str = "\
Examples:
  husk wait --for=condition=Ready pod/web
  husk wait --for=condition=Ready=False pod -l app=web --timeout 1m
  husk wait --for=jsonpath='{.status.phase}'=Succeeded pod/job
  husk wait --for=delete pod/web --timeout 60s";
