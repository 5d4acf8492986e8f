"""Talking to deployments from the browser: the console asks their OpenAI front, with the key that it keeps."""
