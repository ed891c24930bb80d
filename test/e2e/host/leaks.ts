import type { Edgehostd } from './edgehostd.ts'

/** Every place on the host that contains a secret; by default the secrets of all requests and replies. */
export async function findLeaks(
  edgehostd: Edgehostd,
  secrets: Iterable<string> = edgehostd.secrets,
): Promise<string[]> {
  // The patterns are passed by standard input, so that the search does not find itself.
  const patterns = [...secrets].flatMap((secret) => [
    ...new Set([secret, JSON.stringify(secret).slice(1, -1)]),
  ])
  const lines = patterns.filter((pattern) => !/[\n\0]/.test(pattern)).join('\n')
  if (!lines) throw new Error('no secret went over the wire: this finds nothing')
  const searched = `
    patterns=$(cat)
    search() { grep --fixed-strings --text --quiet --file <(printf '%s\\n' "$patterns") "$@"; }
    journalctl --no-pager --output=export --all | search - && echo journal
    find /var/lib/edgehostd /run/edgehostd /var/cache/edgehostd /etc/edgehostd /var/log /tmp -type f 2>/dev/null |
      while read -r file; do search "$file" && echo "$file"; done
    for file in /proc/[0-9]*/cmdline /proc/[0-9]*/environ; do search "$file" 2>/dev/null && echo "$file"; done
    exit 0
  `
  const found = await edgehostd.output(['bash', '--norc', '-c', searched], { input: lines })
  return found.split('\n').filter(Boolean)
}
