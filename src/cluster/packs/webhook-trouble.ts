import { fieldAt, listAt, textAt } from '../../kubernetes/fields.ts'
import type { KubernetesClient } from '../../kubernetes/client.ts'

// The API server names the webhook, which is not the name of an object, and not always the service.
const refusal = /(?:failed calling webhook|admission webhook) "([^"]+)"/

const configurations = ['ValidatingWebhookConfiguration', 'MutatingWebhookConfiguration']

/**
 * Says which configuration a webhook belongs to that has refused or not answered a change, and which service it asks.
 * @param message of the API server, also as helm repeats it
 * @returns the end of a sentence, which begins with `; `; empty for other messages, and if nothing can be found out
 */
export async function webhookIn(
  client: KubernetesClient,
  message: string,
  signal: AbortSignal,
): Promise<string> {
  const webhook = refusal.exec(message)?.[1]
  if (webhook === undefined) return ''
  try {
    for (const kind of configurations) {
      const resource = await client.resourceOf('admissionregistration.k8s.io/v1', kind, signal)
      for (const object of resource ? await client.list(resource, { signal }) : []) {
        const found = listAt(object, ['webhooks']).find(({ name }) => name === webhook)
        if (found) return `; this webhook is of the ${kind} ${object.metadata.name}, ${targetOf(found)}`
      }
    }
  } catch {
    // The message of the API server is said anyway.
  }
  return ''
}

function targetOf(webhook: Readonly<Record<string, unknown>>): string {
  const service = fieldAt(webhook, ['clientConfig', 'service'])
  const [namespace, name] = [textAt(service, ['namespace']), textAt(service, ['name'])]
  if (name === '') return `which asks ${textAt(webhook, ['clientConfig', 'url'])}`
  return `which asks the Service ${namespace}/${name}: kubectl --namespace ${namespace} get endpointslices,pods shows whether its pods run`
}
