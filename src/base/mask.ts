/** Stands in the place of a secret, wherever one would be shown. It has no `$`, so it can replace matches as it is. */
export const masked = '********'

/** Whether a text is nothing but a mask, as exports have it in the place of a secret. */
export const isMask = (text: string): boolean => /^\*+$/.test(text)
