import type { Event } from '../../src/cluster/events/schemas.ts'

const clusterUid = '0198c1f0-6f0e-7c3a-9d52-2f6d7c1b0a44'

const hostEvent = (number: number, seconds: number, fields: Partial<Event>): Event => ({
  metadata: {
    ...{ uid: `edgehostd-${number}`, name: `edgehostd-${number}`, number },
    creationTimestamp: `2026-01-31T08:00:0${seconds}.000Z`,
  },
  involvedObject: { kind: 'Cluster', uid: clusterUid },
  relatedObject: { kind: 'spectrocluster', uid: clusterUid },
  ...{ reason: '', message: '', severity: 'Normal', source: { component: 'edgehostd', host: 'edge-1' } },
  ...{ clusterUid, type: 'StepsSucceed', step: 'kubeadm-init' },
  ...fields,
})
/** Events of a step that has failed. */
export const clusterEvents = [
  hostEvent(2, 5, {
    ...{ reason: 'StepFailed', severity: 'Warning' },
    message: 'the kubelet is not healthy after 4m0s; see journalctl -u kubelet',
  }),
  hostEvent(1, 1, { reason: 'StepStarted', message: 'Set up the control plane' }),
]
/** A line of the kubelet. */
export const errorLog: Event = {
  metadata: {
    uid: 's=0b1c;i=2f;b=77aa;m=1d;t=64;x=9e',
    name: 's=0b1c;i=2f;b=77aa;m=1d;t=64;x=9e',
    number: 0,
    creationTimestamp: '2026-01-31T08:00:04.123Z',
  },
  involvedObject: { kind: 'Unit', name: 'kubelet.service' },
  ...{ reason: 'LogError', message: 'E0131 08:00:04.123 812 kubelet.go:2412] "Unhandled Error"' },
  ...{ severity: 'Error', source: { component: 'kubelet', host: 'edge-1' } },
}
