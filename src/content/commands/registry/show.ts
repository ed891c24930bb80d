import { renderFacts, type Fact } from '../../../ctl/facts.ts'
import type { Context } from '../../../ctl/context.ts'
import type { ContentRegistry } from '../../schemas.ts'

export const registryPath = '/v1/edge-mgmt/content/registry'
/** What every reply has; the others are of some registries only. */
export const registryFields = ['isEnabled', 'address', 'port', 'hosts'] as const

/** `edgehostctl content registry show`. */
export async function showRegistry({ client, output }: Context): Promise<undefined> {
  const registry = await client.get<ContentRegistry>(registryPath, registryFields)
  await output.show(registry, (paper) => renderFacts(factsOf(registry), paper))
  return undefined
}

function factsOf({ isEnabled, address, port, isTls, isAnonymous, ...registry }: ContentRegistry): Fact[] {
  const { isListening, problem, username, hosts } = registry
  const images: Fact = { label: 'Images of', lines: hosts.length > 0 ? hosts : ['-'] }
  if (!isEnabled)
    return [
      {
        label: 'Registry',
        lines: ['switched off; content.registry.enabled switches it on'],
        mood: 'warning',
      },
      images,
    ]
  const host = address.includes(':') ? `[${address}]` : address
  return [
    { label: 'Registry', lines: [`${isTls ? 'https' : 'http'}://${host}:${port}`] },
    isListening
      ? { label: 'State', lines: ['listening'], mood: 'good' }
      : {
          label: 'State',
          lines: ['not listening', ...(problem === undefined ? [] : [problem])],
          mood: 'bad',
        },
    {
      label: 'Access',
      lines: [isAnonymous ? 'without a password' : `as ${username}, with the password of this host`],
    },
    images,
  ]
}
