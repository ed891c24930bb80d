/**
 * The forms in which programs of a cluster write a value inside of other text: quoted once or several times, as an error within an error
 * is; percent-encoded; in base64, alone or in the midst of other bytes; its lines joined to one.
 */
export function encodingsOf(value: string): string[] {
  const text = value.trim()
  const lines = text.split(/\s*\n\s*/)
  return [...quotings(text), ...percentEncodings(text), ...inBase64(text), lines.join('; '), lines.join(' ')]
}

const quoted = (text: string) => JSON.stringify(text).slice(1, -1)

/** As JSON and Go (strconv.Quote) quote it, up to three times; Go's JSON escapes `<`, `>` and `&` too, other programs all beyond ASCII. */
function quotings(text: string): string[] {
  const once = quoted(text)
  const escape = (which: RegExp) =>
    once.replace(which, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
  const first = [once, escape(/[<>&\u2028\u2029]/g), escape(/[^\0-\x7f]/g)]
  return first.flatMap((each) => [each, quoted(each), quoted(quoted(each))])
}

/** RFC 3986, 2.1, with all reserved characters; in a query Go and browsers write a blank as `+`. */
function percentEncodings(text: string): string[] {
  const component = encodeURIComponent(text.toWellFormed())
  const strict = component.replace(/[!'()*]/g, (sign) => `%${sign.charCodeAt(0).toString(16).toUpperCase()}`)
  const upper = [component, strict, component.replaceAll('%20', '+'), strict.replaceAll('%20', '+')]
  return [...upper, ...upper.map((each) => each.replace(/%../g, (code) => code.toLowerCase()))]
}

// Less is found in unrelated base64 too often.
const shortestInBase64 = 6

/**
 * The characters of base64 that a text decides alone, for each of the three offsets that it may have in the encoded bytes: RFC 4648, 4 and
 * 5. The characters that it shares with its neighbours say at most some bits of its first and last byte.
 */
function inBase64(text: string): string[] {
  const bytes = Buffer.from(text)
  return [0, 1, 2].flatMap((before) => {
    const encoded = Buffer.concat([Buffer.alloc(before), bytes]).toString('base64')
    const own = encoded.slice(Math.ceil((before * 8) / 6), Math.floor(((before + bytes.length) * 8) / 6))
    return own.length < shortestInBase64 ? [] : [own, own.replaceAll('+', '-').replaceAll('/', '_')]
  })
}
