/** Replaces a secret wherever one would be shown. It has no `$`, so it can be used as a replacement string as it is. */
export const masked = '********'

/** Whether a text consists only of a mask; exports contain one in place of each secret. */
export const isMask = (text: string): boolean => /^\*+$/.test(text)
