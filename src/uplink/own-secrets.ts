/** What a secret of this host is for. */
export type SecretKind = 'registrationToken' | 'sessionToken' | 'kubeconfig'

/** Secrets that this host has told its platform. No cause shows them, whichever call the platform or a proxy repeats them to. */
export interface OwnSecrets {
  /** Adds one. The last few of each kind are kept. */
  add(kind: SecretKind, secret: string): void
  all(): readonly string[]
}

// A kubeconfig has one or two, and a token of a session is good for 15 minutes.
const keptOfKind = 8

/** Secrets of this host, in memory only. */
export function createOwnSecrets(): OwnSecrets {
  const kept = new Map<SecretKind, readonly string[]>()
  return {
    add(kind, secret) {
      const others = (kept.get(kind) ?? []).filter((other) => other !== secret)
      kept.set(kind, [secret, ...others].slice(0, keptOfKind))
    },
    all: () => [...kept.values()].flat(),
  }
}

/** The secret values of a kubeconfig: keys of clients, tokens and passwords. */
export const secretsOfKubeconfig = (kubeconfig: string): readonly string[] =>
  Array.from(kubeconfig.matchAll(/(?:client-key-data|token|password)["']?: *["']?([^\s"',}]+)/g), (found) =>
    String(found[1]),
  )

// A shorter part of a secret is also found in what is none.
const shortestPart = 16

/**
 * Masks secrets in a short text, and parts of them: a reply may have only the beginning of what was sent.
 * @param secrets an empty one is in no text
 */
export function maskSecrets(text: string, secrets: readonly string[]): string {
  // Which characters are secret. The text itself is changed only once: secrets may have parts of the word that replaces them.
  const isSecret = new Uint8Array(text.length)
  for (const secret of secrets) {
    const length = Math.min(secret.length, shortestPart)
    if (length === 0) continue
    for (let from = 0; from + length <= text.length; from++)
      if (secret.includes(text.slice(from, from + length))) isSecret.fill(1, from, from + length)
  }
  return Array.from(isSecret, (is, at) =>
    is === 0 ? text.charAt(at) : isSecret[at - 1] === 1 ? '' : '(secret)',
  ).join('')
}
