/** Replaces a secret wherever one would be shown. It has no `$`, so it can be used as a replacement string as it is. */
export const masked = '********'

/** Whether a text consists only of a mask, also with space around it; exports contain one in place of each secret. */
export const isMask = (text: string): boolean => /^\*+$/.test(text.trim())

// The name of a secret, with the separator before its value.
const named = /((?:password|passphrase|secret|token|authorization|cookie)\\*["']?\s*[=:]\s*)/

/** Patterns of secrets, and the replacement of each. */
const shapes: readonly (readonly [RegExp, string])[] = [
  // RFC 7468.
  [/-----BEGIN ([A-Z ]*PRIVATE KEY)-----.*?(-----END \1-----|$)/gs, `-----BEGIN $1----- ${masked}`],
  // JSON Web Tokens, RFC 7519: a header, which begins with {", and two more parts.
  [/\beyJ[\w-]{8,}\.[\w-]+\.[\w-]*/g, masked],
  // scheme://user:password@host, RFC 3986, 3.2.1.
  [/(\b[a-z][a-z0-9+.-]*:\/\/[^\s/:@]+:)[^\s/@]+@/gi, `$1${masked}@`],
  // --token VALUE, as programs and their help write an option.
  [
    /(--[\w-]*(?:password|passphrase|secret|token|certificate-key)[ \t]+)(?![-*/])[^\s"'\\]+/gi,
    `$1${masked}`,
  ],
  // "password": "...", also in text that is quoted again; a path, a number and a mask are not secrets.
  [new RegExp(`${named.source}(\\\\*["'])(?!\\/|\\*)(?:(?!\\2)(?:\\\\.|.))+\\2`, 'gi'), `$1$2${masked}$2`],
  // RefreshToken=..., authorization: Bearer ...
  [
    new RegExp(
      `${named.source}(?!\\d+\\b|true\\b|false\\b|null\\b|not set\\b|\\/|\\*)(?:(?:Bearer|Basic) )?[^\\s,;{}[\\]"'\\\\]+`,
      'gi',
    ),
    `$1${masked}`,
  ],
]

/** Replaces what looks like a token, a private key or a password in a text. */
export const maskShapes = (text: string): string =>
  shapes.reduce((rest, [shape, replacement]) => rest.replace(shape, replacement), text)
