import type { KubernetesApi } from './kubernetes-api.ts'

const ready = {
  status: {
    phase: 'Running',
    conditions: [
      { type: 'Ready', status: 'True', lastTransitionTime: '2026-01-01T00:00:00Z' },
      { type: 'ContainersReady', status: 'True', lastTransitionTime: '2026-01-01T00:00:00Z' },
    ],
  },
}

/** The status of a pod whose image is missing, as a kubelet writes it. */
const imageMissing = {
  status: {
    phase: 'Pending',
    containerStatuses: [
      {
        ...{ name: 'web', image: 'example.com/web:1', imageID: '', ready: false, restartCount: 0 },
        state: {
          waiting: { reason: 'ImagePullBackOff', message: 'Back-off pulling image "example.com/web:1"' },
        },
      },
    ],
  },
}

/** Plays the kubelet, which these clusters lack: makes the pending pods of a namespace ready. @returns how many */
export const makePodsReady = (api: KubernetesApi, namespace: string) => patchPods(api, namespace, ready)

/** Plays a kubelet that cannot pull the image of the container `web`. @returns of how many pods */
export const missImages = (api: KubernetesApi, namespace: string) => patchPods(api, namespace, imageMissing)

async function patchPods(api: KubernetesApi, namespace: string, status: object): Promise<number> {
  const pods = `/api/v1/namespaces/${namespace}/pods`
  const { items } = (await api.ask('GET', `${pods}?fieldSelector=status.phase%3DPending`)) as {
    items: readonly { metadata: { name: string } }[]
  }
  for (const { metadata } of items) await api.ask('PATCH', `${pods}/${metadata.name}/status`, status)
  return items.length
}
